/// A queue in a ring of power-of-two capacity that grows and never shrinks.
#pragma once
#include <cstddef>
#include <vector>

namespace moehub::sim {

template <class T>
class Ring {
  public:
    bool empty() const { return head_ == tail_; }
    const T& front() const { return items_[head_ & mask_]; }
    void push(const T& item) {
        if (tail_ - head_ == items_.size()) grow();
        items_[tail_++ & mask_] = item;
    }
    T pop() { return items_[head_++ & mask_]; }

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
    std::size_t head_ = 0;  ///< both only grow; their low bits index the ring
    std::size_t tail_ = 0;
};

}  // namespace moehub::sim
