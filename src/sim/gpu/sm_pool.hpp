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
        bool await_ready() const {
            if (pool.free_ == 0) return false;
            --pool.free_;
            return true;
        }
        void await_suspend(std::coroutine_handle<> block) { pool.waiting_.push_back(block); }
        void await_resume() const {}
    };
    /// Waits for a slot. Whoever takes one gives it back.
    Take take() { return {*this}; }

    void give() {
        if (waiting_.empty()) {
            ++free_;
            return;
        }
        gpu_->resume(waiting_.front());
        waiting_.pop_front();
    }

    int free() const { return free_; }

  private:
    Endpoint* gpu_;
    int free_;
    std::deque<std::coroutine_handle<>> waiting_;
};

}  // namespace moehub::sim
