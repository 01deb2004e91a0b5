/// The streaming multiprocessors of one GPU: slots that thread blocks take and give back, in the
/// order in which they asked.
#pragma once
#include "sim/endpoint.hpp"

#include <coroutine>
#include <deque>

namespace moehub::sim {

class SmPool {
  public:
    SmPool(Endpoint& gpu, int slots) : gpu_(&gpu), free_(slots) {}

    struct Take {
        SmPool& pool;
        int count;
        bool await_ready() const {
            if (!pool.waiting_.empty() || pool.free_ < count) return false;
            pool.free_ -= count;
            return true;
        }
        void await_suspend(std::coroutine_handle<> block) {
            pool.waiting_.push_back({count, block});
        }
        void await_resume() const {}
    };
    /// Waits for so many slots, given all at once. Whoever takes them gives them back.
    Take take(int count = 1) { return {*this, count}; }

    void give(int count = 1) {
        free_ += count;
        while (!waiting_.empty() && waiting_.front().count <= free_) {
            free_ -= waiting_.front().count;
            gpu_->resume(waiting_.front().block);
            waiting_.pop_front();
        }
    }

    int free() const { return free_; }

  private:
    Endpoint* gpu_;
    int free_;
    struct Waiter {
        int count;
        std::coroutine_handle<> block;
    };
    std::deque<Waiter> waiting_;
};

}  // namespace moehub::sim
