/// One GPU as the fabric sees it: its hub's ingress and memory, and the programs that run on it.
#pragma once
#include "sim/event.hpp"
#include "sim/hub/multimem.hpp"
#include "sim/queues.hpp"
#include "sim/transfer.hpp"

#include <moehub/process.hpp>

#include <coroutine>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace moehub::sim {

using moehub::Process;

class Fabric;
class Hub;
class Recorder;
class SharedRate;
struct HubArrival;
struct RowStretch;

/// Something on a GPU that wants to be called at a time. Slow path only.
class Alarm {
  public:
    virtual void ring() = 0;

  protected:
    ~Alarm() = default;
};

class Endpoint {
  public:
    Endpoint(Fabric& fabric, GpuId id);
    Endpoint(const Endpoint&) = delete;  // programs refer to it
    Endpoint(Endpoint&&) = default;      // before any program is spawned

    GpuId id() const { return id_; }
    Ps now() const { return now_; }
    Bytes received() const { return received_; }       ///< bytes stored here or loaded by this GPU
    std::int64_t packets() const { return packets_; }  ///< packets here, but for acks

    // What programs call.
    void spawn(std::string name, Process process);
    /// Starts a program that waits for work as long as the run lasts: nobody waits for its end.
    void spawn_unit(std::string name, Process process);
    CounterId add_counter(std::string name);
    /// Adds counters whose numbers follow one another; returns the first.
    CounterId add_counters(const std::string& name, std::size_t count);
    void drop_counter(CounterId counter);  ///< nobody may use it any more
    void increase(CounterId counter);
    std::int64_t value(CounterId counter) const { return counters_[counter].value; }
    /// Hands a transfer to the hub; it reaches the egress after the hub's store latency.
    /// What it carries the receiver can `take` under the counter `arrived`.
    TransferId post(const Transfer& wanted);
    /// Puts down a message of the GPU to itself: it is there at once, nothing moves.
    void keep(CounterId arrived, Message message);
    /// Takes what has arrived under a counter since the last time, in the order of its arrival.
    std::vector<Received> take(CounterId arrived);

    /// Resumes a suspended coroutine at the present time, after what is already due.
    void resume(std::coroutine_handle<> waiting) {
        present_.push_back({.time = now_, .order = order_++, .waiting = waiting});
    }
    /// Increases the counter by one at that time.
    void increase_at(Ps time, CounterId counter) { add_timer({.time = time, .counter = counter}); }
    /// The alarm must outlive the call.
    void call_at(Ps time, Alarm& alarm) { add_timer({.time = time, .alarm = &alarm}); }

    struct Delay {
        Endpoint& endpoint;
        Ps duration;
        bool await_ready() const { return duration <= 0; }
        void await_suspend(std::coroutine_handle<> caller);
        void await_resume() const {}
    };
    Delay delay(Ps duration) { return {*this, duration}; }

    struct Until {
        Endpoint& endpoint;
        CounterId counter;
        std::int64_t value;
        bool await_ready() const;
        void await_suspend(std::coroutine_handle<> caller);
        void await_resume() const {}
    };
    /// Waits until the counter has reached the value.
    Until until(CounterId counter, std::int64_t value) { return {*this, counter, value}; }

    /// What the hub has beyond the plain path: regions of rows, and the units of MoE-Hub. Must
    /// outlive the run.
    void attach(Hub& hub) { hub_ = &hub; }
    Hub* hub() const { return hub_; }

    /// The memory that all of it passes, and what a written byte costs beside one that is read.
    void attach_memory(SharedRate& memory, double write_cost) {
        memory_ = &memory;
        write_cost_ = write_cost;
    }
    /// Counts stores that the hub has taken in from the SMs (Transfer::told).
    void count_stores(CounterId counter) { stores_ = counter; }
    CounterId stores() const { return stores_; }
    /// Bytes that are copied from memory to memory; returns until when.
    Ps copy_in_memory(Bytes bytes);

    void record(Recorder& recorder) { recorder_ = &recorder; }
    Recorder* recorder() const { return recorder_; }  ///< null where nobody records

    // What the fabric calls.
    void drop_programs();
    Ps run(std::span<const Event> events, Ps until);
    bool idle() const;
    /// What each unfinished program waits for, a line each.
    void describe_waiters(std::string& text) const;

  private:
    struct Timer {  // resumes a coroutine, increases a counter, or rings an alarm
        Ps time = 0;
        std::uint64_t order = 0;
        std::coroutine_handle<> waiting = {};
        CounterId counter = kNoCounter;
        Alarm* alarm = nullptr;
        TransferId carrier = kNoTransfer;  ///< its message is there now, under the counter
        bool operator>(const Timer& other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };
    struct Waiter {
        std::int64_t value;
        std::coroutine_handle<> waiting;
    };
    struct Counter {
        std::string name;
        std::int64_t value = 0;
        std::vector<Waiter> waiters;
        std::vector<Received> inbox;
    };
    struct Spawned {
        std::string name;
        Process process;
        bool unit = false;
    };

    void add_timer(Timer timer);
    Ps next_timer() const;
    Timer take_timer();
    void fire(const Timer& timer);
    void receive(const Train& train);
    void store(const Train& train);
    void reduce(const Train& train);
    void deliver(const Train& train, Ps visible);
    void count_received(const Train& train);
    bool all_of_it(Transfer& transfer, const Train& train);
    void receive_message(TransferId carrier);
    Fault fault_of(const Transfer& transfer) const;
    SumId read(const Train& request);
    RowStretch stretch_of(const Train& train) const;
    void add_sum(const Train& train, Ps visible);
    void complete(const Train& train);
    HubArrival arrival_of(const Train& train) const;
    void answer_list(const Train& request);
    void respond(const Train& request, EventKind kind, Ps latency, std::uint16_t packets,
                 SumId sum);
    Ps memory_reads(double bytes);
    Ps memory_writes(double bytes);
    Ps issue_list(Transfer& transfer);
    void post_to_self(TransferId id);
    bool to_self(const Train& train) const;
    Bytes largest_to_self() const;

    Fabric* fabric_;
    Hub* hub_ = nullptr;
    Recorder* recorder_ = nullptr;
    SharedRate* memory_ = nullptr;
    double write_cost_ = 1;
    CounterId stores_ = kNoCounter;
    MultimemQueue multimem_;
    GpuId id_;
    Ps now_ = 0;
    Bytes received_ = 0;
    std::int64_t packets_ = 0;
    std::uint64_t order_ = 0;
    std::vector<Timer> timers_;   ///< min-heap of timers, those in present_ aside
    std::vector<Timer> present_;  ///< timers of the present time in line, from first_ on
    std::size_t first_ = 0;       ///< front of the line in present_
    std::unordered_map<TransferId, Bytes> copies_;  ///< bytes that have come here of multicasts
    Reused<Counter> counters_;
    std::vector<Spawned> programs_;
    std::size_t finished_ = 0;  ///< programs that ended and are still in the list
};

}  // namespace moehub::sim
