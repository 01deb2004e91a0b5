// A GPU's programs: counters, timers, and what they hand to the hub.
#include "sim/endpoint.hpp"

#include "sim/fabric.hpp"
#include "sim/recorder.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace moehub::sim {
namespace {

constexpr Bytes kInstruction = 512;  ///< bytes of a warp's instruction: 32 threads of 16 B

}  // namespace

Endpoint::Endpoint(Fabric& fabric, GpuId id) : fabric_(&fabric), id_(id) {}

void Endpoint::drop_programs() {
    programs_.clear();
}

void Endpoint::spawn(std::string name, Process process) {
    process.count_end_in(finished_);
    resume(process.handle());
    programs_.push_back({std::move(name), std::move(process)});
}

void Endpoint::spawn_unit(std::string name, Process process) {
    spawn(std::move(name), std::move(process));
    programs_.back().unit = true;
}

CounterId Endpoint::add_counter(std::string name) {
    const CounterId id = counters_.take();
    counters_[id].name = std::move(name);
    return id;
}

CounterId Endpoint::add_counters(const std::string& name, std::size_t count) {
    const CounterId first = counters_.append(count);
    for (CounterId i = first; i < first + count; ++i) counters_[i].name = name;
    return first;
}

void Endpoint::drop_counter(CounterId counter) {
    counters_[counter] = {};
    counters_.give_back(counter);
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
    Ps issued = now_;
    if (transfer.kind == EventKind::meet) transfer.dst = id_;
    if (transfer.multicast()) {
        transfer.dst = id_;
        if (transfer.target.list != kNoGroup) issued = issue_list(transfer);
    }
    const TransferId id = fabric_->add_transfer(transfer);
    if (recorder_ != nullptr) {
        const bool rows = transfer.message != kNoMessage && transfer.kind == EventKind::store;
        recorder_->rows.posted(
            id, transfer,
            rows ? fabric_->messages().rows(transfer.message) : std::span<const CarriedRow>{},
            now_);
    }
    if (transfer.dst == id_ && !transfer.multicast() && is_write(transfer.kind)) {
        post_to_self(id);
        return id;
    }
    Train train;
    train.kind = EventKind::post;
    train.transfer = id;
    fabric_->push(fabric_->topology().egress(id_), train,
                  issued + fabric_->machine().hub.store_latency, fabric_->topology().gpu(id_));
    return id;
}

/// Loads by list do not wait behind stores by list: each kind has a queue, as if a peer's.
Ps Endpoint::issue_list(Transfer& transfer) {
    const Topology& topology = fabric_->topology();
    if (transfer.kind == EventKind::load) {
        const std::uint32_t first = topology.node(id_) * topology.gpus_per_node;
        const std::uint32_t next = (topology.rail(id_) + 1) % topology.gpus_per_node;
        transfer.dst = static_cast<GpuId>(first + next);
    }
    return multimem_.pass(fabric_->machine().dysharp,
                          (transfer.bytes + kInstruction - 1) / kInstruction, now_);
}

void Endpoint::keep(CounterId arrived, Message message) {
    counters_[arrived].inbox.push_back({id_, 0, std::move(message)});
    increase(arrived);
}

std::vector<Received> Endpoint::take(CounterId arrived) {
    if (recorder_ != nullptr)
        for (const Received& some : counters_[arrived].inbox)
            recorder_->rows.taken(some.message.rows, id_, now_);
    return std::exchange(counters_[arrived].inbox, {});
}

void Endpoint::Delay::await_suspend(std::coroutine_handle<> caller) {
    endpoint.add_timer({.time = endpoint.now_ + duration, .waiting = caller});
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
    std::erase_if(programs_, [](const Spawned& program) {
        if (!program.process.done()) return false;
        program.process.rethrow();
        return true;
    });
}

bool Endpoint::idle() const {
    return std::all_of(programs_.begin(), programs_.end(),
                       [](const Spawned& program) { return program.unit; });
}

void Endpoint::describe_waiters(std::string& text) const {
    std::map<std::string, int> lines;  // many of a kind may wait for the same
    for (const Spawned& program : programs_)
        if (!program.unit) ++lines[program.name];
    for (const Counter& counter : counters_.all())
        for (const Waiter& waiter : counter.waiters)
            ++lines[fmt::format("waits for {}, has {} of {}", counter.name, counter.value,
                                waiter.value)];
    for (const auto& [line, times] : lines)
        text += fmt::format("\n  gpu {}: {}{}", id_, line,
                            times > 1 ? fmt::format(" ({} times)", times) : "");
}

}  // namespace moehub::sim
