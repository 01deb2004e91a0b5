/// A queue of timed items in a ring of power-of-two capacity that grows and never shrinks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace moehub::sim {

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
    std::size_t head_ = 0;  ///< both grow while there are items; their low bits index the ring
    std::size_t tail_ = 0;
};

}  // namespace moehub::sim
