/// What a GPU did at each moment: computed; or, where no kernel ran, had rows underway; or neither.
#pragma once
#include <moehub/units.hpp>

#include <vector>

namespace moehub::sim {

class Activity {
  public:
    struct Interval {
        Ps begin = 0;
        Ps end = 0;
    };

    /// `change` more (or fewer) kernels run, transfers are underway, from `now` on.
    void compute(int change, Ps now) {
        advance(now);
        note(computing_, change, now, compute_intervals_);
    }
    void communicate(int change, Ps now) {
        advance(now);
        note(communicating_, change, now, communication_intervals_);
    }

    // Up to the last change.
    Ps computed() const { return computed_; }
    Ps exposed() const { return exposed_; }  ///< rows underway, no kernel running
    // Without breaks; the last one is open while it lasts.
    const std::vector<Interval>& compute_intervals() const { return compute_intervals_; }
    const std::vector<Interval>& communication_intervals() const {
        return communication_intervals_;
    }

  private:
    static void note(int& count, int change, Ps now, std::vector<Interval>& intervals) {
        const bool before = count > 0;
        count += change;
        if (!before && count > 0) {
            const bool goes_on = !intervals.empty() && intervals.back().end == now;
            if (!goes_on) intervals.push_back({now, now});
        } else if (before && count == 0) {
            intervals.back().end = now;
        }
    }
    void advance(Ps now) {
        if (computing_ > 0) {
            computed_ += now - last_;
        } else if (communicating_ > 0) {
            exposed_ += now - last_;
        }
        last_ = now;
    }

    int computing_ = 0;
    int communicating_ = 0;
    Ps last_ = 0;
    Ps computed_ = 0;
    Ps exposed_ = 0;
    std::vector<Interval> compute_intervals_;
    std::vector<Interval> communication_intervals_;
};

}  // namespace moehub::sim
