/// Clocks for threads: each remembers what its kernels take, so that one is handed on rather than
/// copied anew.
#pragma once
#include <moehub/training.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace moehub {

class ClockPool {
  public:
    explicit ClockPool(const TrainingClock& first) : first_(first) {}

    /// Calls work(clock) with one that no other thread uses meanwhile.
    template <class Work>
    void with_clock(const Work& work) {
        std::unique_ptr<TrainingClock> clock = take();
        work(*clock);
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(clock));
    }

  private:
    std::unique_ptr<TrainingClock> take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) return std::make_unique<TrainingClock>(first_);
        std::unique_ptr<TrainingClock> clock = std::move(free_.back());
        free_.pop_back();
        return clock;
    }

    const TrainingClock& first_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<TrainingClock>> free_;
};

}  // namespace moehub
