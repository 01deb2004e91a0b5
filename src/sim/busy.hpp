/// When a link carried flits: how many in all, and how busy it was over time.
#pragma once
#include "sim/time_bins.hpp"

namespace moehub::sim {

class Busy {
  public:
    /// Flits that took the link from `begin` to `end`. Calls are in the order of `end`, nearly.
    void add(Ps begin, Ps end, std::int64_t flits) {
        flits_ += flits;
        time_.spread(begin, end, 1);
    }

    std::int64_t flits() const { return flits_; }
    Ps width() const { return time_.width(); }  ///< of a bin
    const std::array<Ps, 64>& bins() const { return time_.bins(); }

  private:
    std::int64_t flits_ = 0;
    TimeBins<64> time_;
};

}  // namespace moehub::sim
