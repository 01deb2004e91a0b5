#include "sim/hub/egress.hpp"

#include "sim/fabric.hpp"

namespace moehub::sim {

Egress::Egress(Fabric& fabric, GpuId gpu)
    : uplinks_(fabric, gpu), requests_(PerPeerQueues(uplinks_)) {
    if (fabric.options().queueing == Queueing::shared_fifo) requests_ = SharedFifo(uplinks_);
    if (fabric.options().queueing == Queueing::rpm) requests_ = PacketManager(uplinks_);
}

Ps Egress::run(Fabric& fabric, std::span<const Event> events, Ps until) {
    return std::visit([&](auto& queue) { return run_with(queue, fabric, events, until); },
                      requests_);
}

/// A post may change whose turn it is, so what comes before it must have left.
template <class Queue>
Ps Egress::run_with(Queue& queue, Fabric& fabric, std::span<const Event> events, Ps until) {
    Ps ran = -1;
    for (const Event& event : events) {  // all posts
        if (event.time != ran || Queue::kEachByItself) queue.run(fabric, uplinks_, event.time);
        ran = event.time;
        fabric.transfer(event.train.transfer).ready = event.time;
        queue.post(fabric, uplinks_, event.train.transfer);
    }
    return queue.run(fabric, uplinks_, until);
}

const RpmStats* Egress::rpm_stats() const {
    const auto* manager = std::get_if<PacketManager>(&requests_);
    return manager == nullptr ? nullptr : &manager->stats();
}

}  // namespace moehub::sim
