#include "sim/engine.hpp"

#include "base/parallel.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <tuple>

namespace moehub::sim {

Engine::Engine(std::size_t components, Ps lag, Scheme scheme)
    : scheme_(scheme), components_(components), words_((components + 63) / 64) {
    if (lag < 1) throw std::logic_error("the engine's lag must be positive");
    shift_ = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(lag))) - 1;
    if (scheme == Scheme::heap) {
        ring_end_ = 0;
        return;
    }
    active_.resize(words_ * kSlots);
    inbox_.resize(components * kSlots);
    buffers_.append(1);  // index 0 stands for "none"
}

bool Engine::Far::operator>(const Far& other) const {
    return std::tie(time, target, source, order) >
           std::tie(other.time, other.target, other.source, other.order);
}

Train& Engine::push_far(ComponentId target, Ps time, ComponentId source, const Train& train) {
    const std::uint32_t index = far_trains_.take();
    add_far({time, target, source, order_++, index});
    return far_trains_[index] = train;
}

void Engine::wake_far(ComponentId target, Ps time) {
    add_far({time, target, 0, order_++, kWake});
}

void Engine::add_far(const Far& entry) {
    far_.push_back(entry);
    std::push_heap(far_.begin(), far_.end(), std::greater<>());
}

Engine::Far Engine::pop_far(Train& train) {
    std::pop_heap(far_.begin(), far_.end(), std::greater<>());
    const Far entry = far_.back();
    far_.pop_back();
    if (entry.train != kWake) {
        train = far_trains_[entry.train];
        far_trains_.give_back(entry.train);
    }
    return entry;
}

bool Engine::next_instant() {
    if (far_.empty()) return false;
    now_ = far_.front().time;
    current_ = far_.front().target;
    batch_.clear();
    while (!far_.empty() && far_.front().time == now_ && far_.front().target == current_) {
        Train train;
        const Far entry = pop_far(train);
        if (entry.train != kWake) batch_.push_back({train, entry.time, entry.source});
    }
    batch_count_ = batch_.size();
    return true;
}

bool Engine::next_window() {
    constexpr std::int64_t kLook = 64;  ///< windows between two looks at who waits
    if (window_ % kLook == 0) end_if_asked();
    std::int64_t window = window_ + 1;
    while (window < window_ + kSlots && !busy_[slot(window)]) ++window;
    const bool ring_empty = window == window_ + kSlots;
    if (ring_empty && far_.empty()) return false;
    if (!far_.empty()) {
        const std::int64_t first = far_.front().time >> shift_;
        window = ring_empty ? first : std::min(window, first);
    }
    pull_far(window);
    window_ = window;
    ring_end_ = window_ + kSlots;
    end_ = (window + 1) << shift_;
    current_ = 0;
    busy_[slot(window)] = false;
    return true;
}

/// Moves what is due from the far heap to the ring, seen from the window about to run.
void Engine::pull_far(std::int64_t window) {
    window_ = window - 1;  // so that push and wake accept `window`
    ring_end_ = window + kSlots;
    while (!far_.empty() && (far_.front().time >> shift_) < ring_end_) {
        Train train;
        const Far entry = pop_far(train);
        if (entry.train == kWake) {
            activate(entry.time >> shift_, entry.target);
        } else {
            push(entry.target, entry.time, entry.source, train);
            --events_;  // it was counted when it was first pushed
        }
    }
}

bool Engine::next_in_window() {
    std::uint64_t* words = &active_[slot(window_) * words_];
    for (std::size_t word = current_ / 64; word < words_; ++word) {
        if (words[word] == 0) continue;
        const int bit = std::countr_zero(words[word]);
        words[word] &= words[word] - 1;
        current_ = static_cast<ComponentId>(word * 64 + static_cast<std::size_t>(bit));
        batch_count_ = 0;
        std::uint32_t& buffer = inbox_[cell(window_, current_)];
        if (buffer != 0) {
            sort_batch(buffers_[buffer]);
            buffers_.give_back(buffer);
            buffer = 0;
        }
        return true;
    }
    return false;
}

/// Counting sort by time into about as many bins as events, then insertion sort, which finds
/// little to do. Senders left their own events in order, so equal keys stay in emission order.
void Engine::sort_batch(std::vector<Event>& inbox) {
    const auto before = [](const Event& a, const Event& b) {
        return a.time != b.time ? a.time < b.time : a.source < b.source;
    };
    const std::size_t count = inbox.size();
    if (std::is_sorted(inbox.begin(), inbox.end(), before)) {
        batch_.swap(inbox);
        batch_count_ = count;
        inbox.clear();
        return;
    }
    const int bits = std::min(static_cast<int>(std::bit_width(count)), shift_);
    const int shift = shift_ - bits;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    const auto bin = [&](const Event& event) {
        return static_cast<std::size_t>((static_cast<std::uint64_t>(event.time) >> shift) & mask);
    };
    bins_.assign(mask + 2, 0);
    for (const Event& event : inbox) ++bins_[bin(event) + 1];
    for (std::size_t i = 1; i <= mask; ++i) bins_[i] += bins_[i - 1];
    if (batch_.size() < count) batch_.resize(count);
    batch_count_ = count;
    for (const Event& event : inbox) batch_[bins_[bin(event)]++] = event;
    for (std::size_t i = 1; i < count; ++i) {
        if (!before(batch_[i], batch_[i - 1])) continue;
        const Event event = batch_[i];
        std::size_t j = i;
        for (; j > 0 && before(event, batch_[j - 1]); --j) batch_[j] = batch_[j - 1];
        batch_[j] = event;
    }
    inbox.clear();
}

}  // namespace moehub::sim
