/// How what travels is kept: a queue that is a ring, one for items that come almost in order, and
/// places that are used again.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace moehub::sim {

/// Items by number. A number that is given back is used again, with what its item has: so that
/// vectors in it keep their memory.
template <class T>
class Reused {
  public:
    std::uint32_t take() {
        if (free_.empty()) give_back(append(1));
        const std::uint32_t id = free_.back();
        free_.pop_back();
        return id;
    }
    /// Appends new items, whose numbers follow one another; returns the first.
    std::uint32_t append(std::size_t count) {
        const auto first = static_cast<std::uint32_t>(items_.size());
        items_.resize(items_.size() + count);
        return first;
    }
    void give_back(std::uint32_t id) { free_.push_back(id); }
    T& operator[](std::uint32_t id) { return items_[id]; }
    const T& operator[](std::uint32_t id) const { return items_[id]; }
    /// All items that there ever were at once; some are free.
    const std::vector<T>& all() const { return items_; }

  private:
    std::vector<T> items_;
    std::vector<std::uint32_t> free_;
};

/// A queue of timed items in a ring of power-of-two capacity that grows and never shrinks.
template <class T>
class Ring {
  public:
    bool empty() const { return head_ == tail_; }
    const T& front() const { return items_[head_ & mask_]; }
    void drop() {
        // An empty ring begins anew: one that holds little stays in the processor's cache.
        if (++head_ == tail_) head_ = tail_ = 0;
    }
    /// A new item behind all that are not later, to be filled in by the caller; what it holds but
    /// for the time is undefined. Most come in order of time.
    T& push(std::int64_t time) {
        if (tail_ - head_ == items_.size()) grow();
        std::size_t place = tail_++;
        for (; place > head_ && items_[(place - 1) & mask_].time > time; --place) {
            items_[place & mask_] = items_[(place - 1) & mask_];
        }
        T& item = items_[place & mask_];
        item.time = time;
        return item;
    }

  private:
    void grow() {
        std::vector<T> larger(items_.empty() ? 8 : 2 * items_.size());
        const std::size_t count = tail_ - head_;
        for (std::size_t i = 0; i < count; ++i) larger[i] = items_[(head_ + i) & mask_];
        items_.swap(larger);
        mask_ = items_.size() - 1;
        head_ = 0;
        tail_ = count;
    }

    std::vector<T> items_;
    std::size_t mask_ = 0;
    std::size_t head_ = 0;  ///< head_ and tail_ grow while there are items; low bits index the ring
    std::size_t tail_ = 0;
};

/// A priority queue for items that come almost in order: those that belong near either end of what
/// is there are put into a sorted ring, by moving a few; the others into a heap beside it. So the
/// usual push and pop cost a few steps, and no order of pushes costs more than a heap would.

/// `Before` orders items; equal ones leave in any order.
template <class T, class Before>
class NearlySorted {
  public:
    bool empty() const { return head_ == tail_ && rest_.empty(); }
    std::size_t size() const { return tail_ - head_ + rest_.size(); }
    const T& front() const { return rest_is_next() ? rest_.front() : at(0); }
    void pop() {
        if (rest_is_next()) {
            std::pop_heap(rest_.begin(), rest_.end(), After());
            rest_.pop_back();
        } else if (++head_ == tail_) {
            head_ = tail_ = 0;  // so that a queue that holds little stays in the processor's cache
        }
    }
    void push(const T& item) {
        const std::size_t count = tail_ - head_;
        if (count == ring_.size()) grow();
        if (count == 0 || !Before()(item, at(count - 1))) return push_back(item, 0);
        if (Before()(item, at(0))) return push_front(item, 0);
        // It belongs behind the first and before the last, so that neither search leaves the ring.
        std::size_t moved = 1;
        while (moved < kReach && Before()(item, at(count - 1 - moved))) ++moved;
        if (moved < kReach) return push_back(item, moved);
        for (moved = 1; moved < kReach && Before()(at(moved), item);) ++moved;
        if (moved < kReach) return push_front(item, moved);
        rest_.push_back(item);
        std::push_heap(rest_.begin(), rest_.end(), After());
    }

  private:
    static constexpr std::size_t kReach = 16;  ///< items that may be moved to make a place

    struct After {  // turns std's heaps upside down
        bool operator()(const T& a, const T& b) const { return Before()(b, a); }
    };

    const T& at(std::size_t i) const { return ring_[(head_ + i) & (ring_.size() - 1)]; }
    T& at(std::size_t i) { return ring_[(head_ + i) & (ring_.size() - 1)]; }
    bool rest_is_next() const {
        return !rest_.empty() && (head_ == tail_ || Before()(rest_.front(), at(0)));
    }
    /// Puts an item behind the first `moved`, which step forward.
    void push_front(const T& item, std::size_t moved) {
        --head_;
        for (std::size_t i = 0; i < moved; ++i) at(i) = at(i + 1);
        at(moved) = item;
    }
    /// Puts an item before the last `moved`, which step back.
    void push_back(const T& item, std::size_t moved) {
        std::size_t place = tail_ - head_;
        ++tail_;
        for (; moved > 0; --moved, --place) at(place) = at(place - 1);
        at(place) = item;
    }
    void grow() {
        std::vector<T> larger(ring_.empty() ? 4 : 2 * ring_.size());
        const std::size_t count = tail_ - head_;
        for (std::size_t i = 0; i < count; ++i) larger[i] = at(i);
        ring_.swap(larger);
        head_ = 0;
        tail_ = count;
    }

    std::vector<T> ring_;   ///< storage, a power of two long
    std::size_t head_ = 0;  ///< head_ and tail_ wrap around; low bits index the ring
    std::size_t tail_ = 0;
    std::vector<T> rest_;  ///< min-heap
};

}  // namespace moehub::sim
