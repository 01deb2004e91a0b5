#include "sim/hub/all_ready.hpp"

#include "sim/hub/isa.hpp"

namespace moehub::sim {

AllReady::AllReady(Fabric& fabric) : fabric_(fabric) {
    for (std::uint32_t gpu = 0; gpu < fabric.topology().gpus; ++gpu) {
        acknowledged_ = fabric.gpu(gpu).add_counter("acknowledged rows");
        senders_done_ = fabric.gpu(gpu).add_counter("GPUs that have sent everything");
        reached_ = fabric.gpu(gpu).add_counter("AllReady");
    }
}

void AllReady::start(GpuId gpu, std::int64_t stores) {
    fabric_.gpu(gpu).spawn("hub: AllReady to all", announce(gpu, stores));
    fabric_.gpu(gpu).spawn("hub: AllReady from all", watch(gpu));
}

Process AllReady::announce(GpuId gpu, std::int64_t stores) {
    Endpoint& endpoint = fabric_.gpu(gpu);
    const std::uint32_t gpus = fabric_.topology().gpus;
    co_await endpoint.until(acknowledged_, stores);
    for (std::uint32_t i = 0; i < gpus; ++i) {
        store_flag(endpoint, static_cast<GpuId>((gpu + i) % gpus), senders_done_);
    }
}

Process AllReady::watch(GpuId gpu) {
    Endpoint& endpoint = fabric_.gpu(gpu);
    co_await endpoint.until(senders_done_, fabric_.topology().gpus);
    co_await endpoint.delay(fabric_.machine().moe_hub.ready_latency);
    endpoint.hub()->all_ready();
    endpoint.increase(reached_);
}

}  // namespace moehub::sim
