#include "sim/endpoint.hpp"

#include "sim/fabric.hpp"
#include "sim/gpu/shared_rate.hpp"
#include "sim/hub/hub.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

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
    counters_[id] = {std::move(name), 0, {}, {}};
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
    if (transfer.multicast()) transfer.dst = id_;
    const TransferId id = fabric_->add_transfer(transfer);
    if (transfer.dst == id_ && !transfer.multicast() && transfer.kind == Kind::store) {
        post_to_self(id);
        return id;
    }
    Train train;
    train.kind = Kind::post;
    train.transfer = id;
    fabric_->push(fabric_->topology().egress(id_), train,
                  now_ + fabric_->machine().hub.store_latency, fabric_->topology().gpu(id_));
    return id;
}

TransferId Endpoint::post(const Transfer& wanted, Message message) {
    Transfer transfer = wanted;
    transfer.message = fabric_->messages().add(std::move(message));
    return post(transfer);
}

void Endpoint::keep(CounterId arrived, Message message) {
    counters_[arrived].inbox.push_back({id_, 0, std::move(message)});
    increase(arrived);
}

std::vector<Received> Endpoint::take(CounterId arrived) {
    return std::exchange(counters_[arrived].inbox, {});
}

Fault Endpoint::fault_of(const Transfer& transfer) const {
    return transfer.faulty ? fabric_->options().fault : Fault{};
}

bool Endpoint::to_self(const Train& train) const {
    return train.src == id_ && !train.multicast && !train.gather;
}

Bytes Endpoint::largest_to_self() const {
    return 0xffff * fabric_->link().payload;  // as many packets as can be counted
}

/// From the hub's door straight to its ingress: nothing goes out.
void Endpoint::post_to_self(TransferId id) {
    Train train;
    train.transfer = id;
    train.src = train.dst = id_;
    const ComponentId self = fabric_->topology().gpu(id_);
    const Bytes largest = largest_to_self();
    Bytes left = fabric_->transfer(id).bytes;
    for (; left > 0; ++train.index) {
        train.bytes = static_cast<std::uint32_t>(std::min(left, largest));
        train.packets = fabric_->link().packets(train.bytes);
        left -= train.bytes;
        fabric_->push(self, train, now_ + fabric_->machine().hub.store_latency, self);
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
            if (handled + 2 < events.size()) fabric_->prefetch(events[handled + 2].train.transfer);
            now_ = events[handled].time;
            receive(events[handled++].train);
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
    if (timer.carrier != kNoTransfer) receive_message(timer.carrier);
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

Ps Endpoint::memory_reads(double bytes) {
    return memory_ == nullptr ? now_ : memory_->take(bytes);
}

Ps Endpoint::memory_writes(double bytes) {
    return memory_ == nullptr ? now_ : memory_->take(bytes * write_cost_);
}

Ps Endpoint::copy_in_memory(Bytes bytes) {
    memory_reads(static_cast<double>(bytes));
    return memory_writes(static_cast<double>(bytes));
}

void Endpoint::receive(const Train& train) {
    if (train.kind != Kind::store) fabric_->release(train.hold, now_, train.flits);
    if (train.kind != Kind::ack && !to_self(train)) packets_ += train.packets;
    const HubSpec& hub = fabric_->machine().hub;
    switch (train.kind) {
        case Kind::store:
            store(train);
            break;
        case Kind::load:
        case Kind::atomic:
            respond(train, Kind::data, memory_reads(train.bytes) - now_ + hub.read_latency);
            break;
        case Kind::data:
            received_ += train.bytes;
            add_sum(train);
            deliver(train, memory_writes(train.bytes));
            complete(train);
            break;
        case Kind::ack:
            complete(train);
            break;
        case Kind::post:  // the hub has taken in a store
            increase(stores_);
            break;
    }
}

/// What the hub cannot pass on yet occupies its ingress, and so its credits.
void Endpoint::store(const Train& train) {
    const Ps written = memory_writes(train.bytes);
    const Ps write_latency = fabric_->machine().hub.write_latency;
    Ps visible = written + write_latency;
    const Transfer& transfer = fabric_->transfer(train.transfer);
    if (transfer.target.region != kNoRegion) {
        const Wire& wire = fabric_->wire_of_uplink(train.plane);
        const Bytes size = to_self(train) ? largest_to_self() : fabric_->train_bytes(wire);
        visible = std::max(visible, hub_->take_in({transfer, train, train.index * size, now_,
                                                   fault_of(transfer)}));
    }
    fabric_->release(train.hold, visible - write_latency, train.flits);
    if (!to_self(train)) received_ += train.bytes;
    deliver(train, visible);
    respond(train, Kind::ack, visible - now_);
}

/// Whether all of a transfer's bytes are here, once this train is; of a multicast this GPU's copy,
/// of a load with several to answer all answers.
bool Endpoint::all_of_it(Transfer& transfer, const Train& train) {
    const Bytes answered = Bytes{train.answers} * train.bytes;
    transfer.delivered += answered;
    if (!transfer.multicast()) return transfer.delivered == transfer.bytes;
    if (transfer.kind != Kind::store) {
        return transfer.delivered == transfer.bytes * fabric_->answers(transfer);
    }
    if (train.bytes == transfer.bytes) return true;
    Bytes& mine = copies_[train.transfer];
    mine += train.bytes;
    if (mine < transfer.bytes) return false;
    copies_.erase(train.transfer);
    return true;
}

void Endpoint::deliver(const Train& train, Ps visible) {
    Transfer& transfer = fabric_->transfer(train.transfer);
    if (!all_of_it(transfer, train)) return;
    const bool first = transfer.delivered_at == kNever;
    transfer.delivered_at = first ? visible : std::max(transfer.delivered_at, visible);
    if (transfer.told && to_self(train)) add_timer({visible, 0, nullptr, stores_});
    if (transfer.arrived == kNoCounter) return;
    const bool carries = transfer.message != kNoMessage;
    add_timer(
        {visible, 0, nullptr, transfer.arrived, nullptr, carries ? train.transfer : kNoTransfer});
}

/// Puts down what a transfer carried, under the counter that tells of it.
void Endpoint::receive_message(TransferId carrier) {
    Transfer& transfer = fabric_->transfer(carrier);
    MessageStore& messages = fabric_->messages();
    Message message =
        transfer.kind == Kind::load
            ? messages.part(transfer.message, transfer.target.row, transfer.target.tag)
            : messages.take(transfer.message);
    std::vector<Received>& inbox = counters_[transfer.arrived].inbox;
    const GpuId from = transfer.kind == Kind::load ? transfer.dst : transfer.src;
    const Fault fault = fault_of(transfer);
    if (fault.what == Fault::What::duplicate) inbox.push_back({from, carrier, message});
    if (fault.what == Fault::What::drop) message = {};
    if (fault.what == Fault::What::delay) {
        transfer.faulty = false;
        if (transfer.kind != Kind::load) transfer.message = messages.add(std::move(message));
        message = {};
        add_timer({now_ + fault.late, 0, nullptr, kNoCounter, nullptr, carrier});
    }
    inbox.push_back({from, carrier, std::move(message)});
}

/// What a load of sums brought.
void Endpoint::add_sum(const Train& train) {
    if (train.sum == kNoSum) return;
    const Transfer& transfer = fabric_->transfer(train.transfer);
    hub_->add_sum(transfer, stretch_of(train), fabric_->sums().take(train.sum), train.answers,
                  fault_of(transfer));
}

void Endpoint::complete(const Train& train) {
    Transfer& transfer = fabric_->transfer(train.transfer);
    transfer.completed += Bytes{train.answers} * train.bytes;
    if (train.kind == Kind::ack && !transfer.from_sm) {
        memory_reads(static_cast<double>(train.bytes) * train.answers / fabric_->answers(transfer));
    }
    if (transfer.completed != transfer.bytes * fabric_->answers(transfer)) return;
    transfer.completed_at = now_;
    if (transfer.answered != kNoCounter) increase(transfer.answered);
}

/// What a load finds here. Rows that lie in memory are written once, so that they may be copied
/// when the load is through.
SumId Endpoint::read(const Train& request) {
    const Transfer& transfer = fabric_->transfer(request.transfer);
    if (transfer.message != kNoMessage && !fabric_->messages().written(transfer.message)) {
        throw std::logic_error(
            fmt::format("gpu {} reads rows that gpu {} has not yet written", request.src, id_));
    }
    if (transfer.target.region == kNoRegion) return kNoSum;
    return fabric_->sums().add(hub_->read_sum(transfer.target.region, stretch_of(request)));
}

/// Which bytes of its target's region a train is about.
RowStretch Endpoint::stretch_of(const Train& train) const {
    const RowTarget& target = fabric_->transfer(train.transfer).target;
    const Bytes size = fabric_->train_bytes(fabric_->wire_of_uplink(train.plane));
    return {target.row, target.offset + train.index * size, Bytes{train.bytes}};
}

void Endpoint::respond(const Train& request, Kind kind, Ps latency) {
    const Topology& topology = fabric_->topology();
    if (to_self(request)) {
        Train& answer =
            fabric_->push(topology.gpu(id_), request, now_ + latency, topology.gpu(id_));
        answer.kind = kind;
        return;
    }
    const std::uint32_t uplink = topology.mesh && topology.same_node(id_, request.src)
                                     ? topology.uplink(id_, request.src, 0)
                                     : request.plane;
    const Wire& wire = fabric_->wire_of_uplink(uplink);
    const SumId sum = kind == Kind::data ? read(request) : kNoSum;
    const std::uint16_t flits = wire.flits(kind, request.bytes, request.packets, false);
    // An acknowledgement that costs nothing on the wire goes straight to whom it concerns.
    const bool free = flits == 0;
    const bool multicast = request.multicast;
    Train& answer = free ? fabric_->push(topology.gpu(request.src), request,
                                         now_ + latency + 2 * wire.latency, topology.gpu(id_))
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
    answer.gather = multicast;
    answer.sum = sum;
    answer.answers = 1;
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
