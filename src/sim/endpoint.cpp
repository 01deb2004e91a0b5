#include "sim/endpoint.hpp"

#include "sim/fabric.hpp"
#include "sim/hub/hub.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace moehub::sim {

void Endpoint::spawn(std::string name, Process process) {
    process.count_end_in(finished_);
    resume(process.handle());
    programs_.push_back({std::move(name), std::move(process)});
}

CounterId Endpoint::add_counter(std::string name) {
    if (free_counters_.empty()) {
        free_counters_.push_back(static_cast<CounterId>(counters_.size()));
        counters_.emplace_back();
    }
    const CounterId id = free_counters_.back();
    free_counters_.pop_back();
    counters_[id] = {std::move(name), 0, {}};
    return id;
}

CounterId Endpoint::add_counters(const std::string& name, std::size_t count) {
    const auto first = static_cast<CounterId>(counters_.size());
    counters_.resize(counters_.size() + count);
    for (std::size_t i = first; i < counters_.size(); ++i) counters_[i].name = name;
    return first;
}

void Endpoint::drop_counter(CounterId counter) {
    counters_[counter] = {};
    free_counters_.push_back(counter);
}

void Endpoint::increase(CounterId id) {
    Counter& counter = counters_[id];
    ++counter.value;
    for (std::size_t i = 0; i < counter.waiters.size();) {
        if (counter.waiters[i].value > counter.value) {
            ++i;
            continue;
        }
        resume(counter.waiters[i].waiting);
        counter.waiters.erase(counter.waiters.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

TransferId Endpoint::post(const Transfer& wanted) {
    Transfer transfer = wanted;
    transfer.src = id_;
    if (transfer.multicast) transfer.dst = id_;
    const TransferId id = fabric_->add_transfer(transfer);
    if (transfer.dst == id_ && !transfer.multicast && transfer.kind == Kind::store) {
        post_to_self(id);
        return id;
    }
    Unit unit;
    unit.kind = Kind::post;
    unit.transfer = id;
    fabric_->push(fabric_->layout().egress(id_), unit, now_ + fabric_->machine().hub.store_latency,
                  fabric_->layout().gpu(id_));
    return id;
}

bool Endpoint::to_self(const Unit& unit) const {
    return unit.src == id_ && !unit.multicast && !unit.gather;
}

Bytes Endpoint::largest_to_self() const {
    return 0xffff * fabric_->link().payload;  // as many packets as can be counted
}

/// From the hub's door straight to its ingress: nothing goes out.
void Endpoint::post_to_self(TransferId id) {
    Unit unit;
    unit.transfer = id;
    unit.src = unit.dst = id_;
    const ComponentId self = fabric_->layout().gpu(id_);
    const Bytes largest = largest_to_self();
    Bytes left = fabric_->transfer(id).bytes;
    for (; left > 0; ++unit.index) {
        unit.bytes = static_cast<std::uint32_t>(std::min(left, largest));
        unit.packets = fabric_->link().packets(unit.bytes);
        left -= unit.bytes;
        fabric_->push(self, unit, now_ + fabric_->machine().hub.store_latency, self);
    }
}

void Endpoint::Delay::await_suspend(std::coroutine_handle<> caller) {
    endpoint.add_timer({endpoint.now_ + duration, 0, caller});
}

bool Endpoint::Until::await_ready() const {
    return endpoint.counters_[counter].value >= value;
}

void Endpoint::Until::await_suspend(std::coroutine_handle<> caller) {
    endpoint.counters_[counter].waiters.push_back({value, caller});
}

void Endpoint::add_timer(Timer timer) {
    timer.order = order_++;
    timers_.push_back(timer);
    std::push_heap(timers_.begin(), timers_.end(), std::greater<>());
}

Ps Endpoint::next_timer() const {
    if (!present_.empty()) return now_;
    return timers_.empty() ? kNever : timers_.front().time;
}

Endpoint::Timer Endpoint::take_timer() {
    if (!present_.empty() && (timers_.empty() || timers_.front() > present_[first_])) {
        const Timer due = present_[first_++];
        if (first_ == present_.size()) {
            present_.clear();
            first_ = 0;
        }
        return due;
    }
    std::pop_heap(timers_.begin(), timers_.end(), std::greater<>());
    const Timer due = timers_.back();
    timers_.pop_back();
    return due;
}

Ps Endpoint::run(std::span<const Event> events, Ps until) {
    std::size_t handled = 0;
    for (;;) {
        const Ps timer = next_timer();
        if (handled < events.size() && events[handled].time <= timer) {
            if (handled + 2 < events.size()) fabric_->prefetch(events[handled + 2].unit.transfer);
            now_ = events[handled].time;
            receive(events[handled++].unit);
        } else if (timer < until) {
            const Timer due = take_timer();
            now_ = due.time;
            fire(due);
        } else {
            return timer;
        }
    }
}

void Endpoint::fire(const Timer& timer) {
    if (timer.counter != kNoCounter) increase(timer.counter);
    if (timer.alarm != nullptr) timer.alarm->ring();
    if (!timer.waiting) return;
    timer.waiting.resume();
    if (finished_ == 0) return;
    finished_ = 0;
    std::erase_if(programs_, [](const Program& program) {
        if (!program.process.done()) return false;
        program.process.rethrow();
        return true;
    });
}

void Endpoint::receive(const Unit& unit) {
    fabric_->release(unit.hold, now_, unit.flits);
    if (unit.kind != Kind::ack && !to_self(unit)) packets_ += unit.packets;
    const HubSpec& hub = fabric_->machine().hub;
    switch (unit.kind) {
        case Kind::store:
            store(unit);
            break;
        case Kind::load:
        case Kind::atomic:
            respond(unit, Kind::data, hub.read_latency);
            break;
        case Kind::data:
            received_ += unit.bytes;
            deliver(unit, now_);
            complete(unit);
            break;
        case Kind::ack:
            complete(unit);
            break;
        case Kind::post:
            break;
    }
}

void Endpoint::store(const Unit& unit) {
    Ps visible = now_ + fabric_->machine().hub.write_latency;
    const Transfer& transfer = fabric_->transfer(unit.transfer);
    if (transfer.target.region != kNoRegion) {
        const Wire& wire = fabric_->wire_of_uplink(unit.plane);
        const Bytes size = to_self(unit) ? largest_to_self() : fabric_->unit_bytes(wire);
        visible = hub_->take_in({transfer, unit, unit.index * size, now_});
    }
    if (!to_self(unit)) received_ += unit.bytes;
    deliver(unit, visible);
    respond(unit, Kind::ack, visible - now_);
}

void Endpoint::deliver(const Unit& unit, Ps visible) {
    Transfer& transfer = fabric_->transfer(unit.transfer);
    transfer.delivered += unit.bytes;
    const Bytes copies = transfer.multicast && transfer.kind == Kind::store
                             ? static_cast<Bytes>(fabric_->layout().gpus_per_node)
                             : 1;
    if (transfer.delivered != copies * transfer.bytes) return;
    transfer.delivered_at = visible;
    if (transfer.arrived != kNoCounter) add_timer({visible, 0, nullptr, transfer.arrived});
}

void Endpoint::complete(const Unit& unit) {
    Transfer& transfer = fabric_->transfer(unit.transfer);
    transfer.completed += unit.bytes;
    if (transfer.completed != transfer.bytes) return;
    transfer.completed_at = now_;
    if (transfer.answered != kNoCounter) increase(transfer.answered);
}

void Endpoint::respond(const Unit& request, Kind kind, Ps latency) {
    const Layout& layout = fabric_->layout();
    if (to_self(request)) {
        Unit& answer = fabric_->push(layout.gpu(id_), request, now_ + latency, layout.gpu(id_));
        answer.kind = kind;
        return;
    }
    const std::uint32_t uplink = layout.mesh && layout.same_node(id_, request.src)
                                     ? layout.uplink(id_, request.src, 0)
                                     : request.plane;
    const Wire& wire = fabric_->wire_of_uplink(uplink);
    const std::uint16_t flits = wire.flits(kind, request.bytes, request.packets, false);
    // An acknowledgement that costs nothing on the wire goes straight to whom it concerns.
    const bool free = flits == 0;
    Unit& answer = free ? fabric_->push(layout.gpu(request.src), request,
                                        now_ + latency + 2 * wire.latency, layout.gpu(id_))
                        : fabric_->answer(id_, uplink, now_ + latency);
    answer.transfer = request.transfer;
    answer.index = request.index;
    answer.bytes = request.bytes;
    answer.hold = kNoPool;
    answer.flits = flits;
    answer.packets = request.packets;
    answer.src = id_;
    answer.dst = request.src;
    answer.plane = static_cast<std::uint8_t>(uplink);
    answer.kind = kind;
    answer.phase = Phase::whole;
    answer.multicast = false;
    answer.gather = request.multicast;
}

bool Endpoint::idle() const {
    return programs_.empty();
}

void Endpoint::describe_waiters(std::string& text) const {
    for (const Program& program : programs_) {
        text += fmt::format("\n  gpu {}: {}", id_, program.name);
    }
    for (const Counter& counter : counters_) {
        for (const Waiter& waiter : counter.waiters) {
            text += fmt::format("\n  gpu {}: waits for {}, has {} of {}", id_, counter.name,
                                counter.value, waiter.value);
        }
    }
}

}  // namespace moehub::sim
