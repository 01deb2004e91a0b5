/// What a GPU did at each moment: computed; or, where no kernel ran, had rows underway; or neither.
#pragma once
#include <moehub/units.hpp>

namespace moehub::sim {

class Activity {
  public:
    /// `change` more (or fewer) kernels run, transfers are underway, from `now` on.
    void compute(int change, Ps now) {
        advance(now);
        computing_ += change;
    }
    void communicate(int change, Ps now) {
        advance(now);
        communicating_ += change;
    }

    // Up to the last change.
    Ps computed() const { return computed_; }
    Ps exposed() const { return exposed_; }  ///< rows underway, no kernel running

  private:
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
};

}  // namespace moehub::sim
