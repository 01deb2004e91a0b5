/// How long a search may work. Work is counted in proposals, so that the same options give the same
/// layout on every machine; the clock only ends what takes too long.
#pragma once
#include <atomic>
#include <chrono>
#include <stop_token>

namespace moehub {

class Budget {
  public:
    /// Proposals of a second: two cores of a 2.8 GHz Xeon do three times as many.
    static constexpr double kPerSecond = 25e6;

    Budget(double seconds, std::stop_token stop)
        : seconds_(seconds),
          end_(Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
          stop_(std::move(stop)) {}

    double work() const { return seconds_ * kPerSecond; }
    double seconds() const { return seconds_; }
    /// Safe to ask from several threads.
    bool over() const {
        if (!over_.load(std::memory_order_relaxed) &&
            (stop_.stop_requested() || Clock::now() >= end_))
            over_.store(true, std::memory_order_relaxed);
        return over_.load(std::memory_order_relaxed);
    }
    /// The search was told to end before it was done.
    bool was_over() const { return over_.load(std::memory_order_relaxed); }

  private:
    using Clock = std::chrono::steady_clock;
    double seconds_;
    Clock::time_point end_;
    std::stop_token stop_;
    mutable std::atomic<bool> over_{false};
};

}  // namespace moehub
