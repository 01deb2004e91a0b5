/// The event engine. A world of components exchanges events; each component sees its own events in
/// the canonical order (time, source, emission order), which depends on no scheme, so both schemes
/// give the same results:
/// - windows: bounded lag. Every effect of one component on another lands at least one window
///   later, so inside a window each component runs alone over its sorted events.
/// - heap: one priority queue, one instant at a time. Slow; the oracle of the tests.
///
/// A world is any type with
///     Ps run(ComponentId, std::span<const Event>, Ps until);
/// which handles the events and all inner activity before `until`, and returns when the component
/// next has something to do by itself (kNever: only when an event or wake comes).
#pragma once
#include "sim/event.hpp"
#include "sim/queues.hpp"

#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

namespace moehub::sim {

enum class Scheme { windows, heap };

class Engine {
  public:
    /// `lag`: the smallest time between a cause and its effect in another component.
    Engine(std::size_t components, Ps lag, Scheme scheme = Scheme::windows);

    /// Sends a copy of `train` from `source`, to be there at `time`; returns the copy, which may be
    /// changed until the next call.
    Train& push(ComponentId target, Ps time, ComponentId source, const Train& train);
    /// Has the component run at `time`, without an event.
    void wake(ComponentId target, Ps time);

    template <class World>
    void run(World& world) {
        if (scheme_ == Scheme::heap) {
            while (next_instant()) finish(world.run(current_, batch(), now_ + 1));
        } else {
            while (next_window()) {
                while (next_in_window()) finish(world.run(current_, batch(), end_));
            }
        }
    }

    std::int64_t events() const { return events_; }

  private:
    static constexpr int kSlots = 64;  ///< windows held ahead; what lies further waits in far_

    struct Far {  // an event, or a wake (train == kWake), outside the ring
        Ps time;
        ComponentId target;
        ComponentId source;
        std::uint64_t order;
        std::uint32_t train;
        bool operator>(const Far& other) const;
    };
    static constexpr std::uint32_t kWake = 0xffffffff;

    bool next_instant();
    bool next_window();
    bool next_in_window();
    std::span<const Event> batch() const { return {batch_.data(), batch_count_}; }
    void finish(Ps next) {
        if (next != kNever) wake(current_, next);
    }
    Train& push_far(ComponentId target, Ps time, ComponentId source, const Train& train);
    void wake_far(ComponentId target, Ps time);
    void add_far(const Far& entry);
    Far pop_far(Train& train);
    void pull_far(std::int64_t window);
    void sort_batch(std::vector<Event>& inbox);
    std::size_t cell(std::int64_t window, ComponentId target) const {
        return slot(window) * components_ + target;
    }
    static std::size_t slot(std::int64_t window) {
        return static_cast<std::size_t>(window) % kSlots;
    }
    void activate(std::int64_t window, ComponentId target) {
        active_[slot(window) * words_ + target / 64] |= std::uint64_t{1} << (target % 64);
        busy_[slot(window)] = true;
    }

    Scheme scheme_;
    std::size_t components_;
    std::size_t words_;                   ///< words of a slot's bitmap of active components
    int shift_ = 0;                       ///< a window is 2^shift_ ps
    std::int64_t window_ = -1;            ///< window being run
    std::int64_t ring_end_ = kSlots - 1;  ///< first window beyond the ring; 0 for the heap
    Ps end_ = 0;
    Ps now_ = 0;
    ComponentId current_ = 0;
    std::int64_t events_ = 0;
    std::vector<Event> batch_;         ///< begins with the sorted events of the component being run
    std::size_t batch_count_ = 0;      ///< events of batch_ that are in use
    std::vector<std::uint32_t> bins_;  ///< bins that sort the batch
    std::vector<std::uint64_t> active_;  ///< [slot][word]
    bool busy_[kSlots] = {};
    std::vector<std::uint32_t> inbox_;  ///< [slot][component] → buffer, 0 for none
    Reused<std::vector<Event>> buffers_;
    std::vector<Far> far_;  ///< min-heap
    Reused<Train> far_trains_;
    std::uint64_t order_ = 0;
};

inline Train& Engine::push(ComponentId target, Ps time, ComponentId source, const Train& train) {
    ++events_;
    const std::int64_t window = time >> shift_;
    if (window >= ring_end_) return push_far(target, time, source, train);
    if (window <= window_) throw std::logic_error("an effect lands inside its own window");
    std::uint32_t& buffer = inbox_[cell(window, target)];
    if (buffer == 0) {
        buffer = buffers_.take();
        activate(window, target);
    }
    return buffers_[buffer].emplace_back(Event{train, time, source}).train;
}

inline void Engine::wake(ComponentId target, Ps time) {
    const std::int64_t window = time >> shift_;
    if (window >= ring_end_) {
        wake_far(target, time);
    } else if (window > window_) {
        activate(window, target);
    } else {
        throw std::logic_error("a wake lands inside its own window");
    }
}

}  // namespace moehub::sim
