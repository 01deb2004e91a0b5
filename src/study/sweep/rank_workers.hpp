/// The threads of one rank that simulate: points go in, what became of them comes out. The thread
/// that owns this object speaks with other ranks meanwhile.
#pragma once
#include "study/sweep/rank_messages.hpp"
#include "study/sweep/run.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace moehub {

class RankWorkers {
  public:
    RankWorkers(const Study& study, const SimulatePoint& simulate, int threads);
    /// Ends the threads, after the points that they are at.
    ~RankWorkers();

    std::size_t threads() const { return threads_.size(); }
    void add(std::size_t point);
    /// Points that were added and have not come out.
    std::size_t underway() const;
    /// Waits for at most `limit`; a result or a failure.
    std::optional<SweepMessage> next(std::chrono::milliseconds limit);

  private:
    void work();

    const Study& study_;
    const SimulatePoint& simulate_;
    mutable std::mutex mutex_;
    std::condition_variable added_;
    std::condition_variable done_;
    std::deque<std::size_t> points_;
    std::deque<SweepMessage> messages_;
    std::size_t underway_ = 0;
    bool ending_ = false;
    std::vector<std::jthread> threads_;
};

}  // namespace moehub
