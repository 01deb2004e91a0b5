/// Something counted over time, in a record that stays small: time is cut into kBins equal bins;
/// when it runs beyond them, bins are joined in pairs, so that their width follows the run's
/// length.
#pragma once
#include <moehub/units.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace moehub::sim {

template <std::size_t kBins>
class TimeBins {
  public:
    /// `weight` for every picosecond from `begin` to `end`. What began before 0 counts from 0 on.
    void spread(Ps begin, Ps end, std::int64_t weight) {
        reach(end);
        const Ps last = end >> shift_;
        if (begin < 0) begin = 0;
        for (Ps bin = begin >> shift_; bin < last; ++bin) {
            const Ps next = (bin + 1) << shift_;
            bins_[static_cast<std::size_t>(bin)] += (next - begin) * weight;
            begin = next;
        }
        bins_[static_cast<std::size_t>(last)] += (end - begin) * weight;
    }
    /// Counts events of one moment.
    void count(Ps at, std::int64_t how_many) {
        reach(at);
        bins_[static_cast<std::size_t>(at >> shift_)] += how_many;
    }

    Ps width() const { return Ps{1} << shift_; }  ///< width of a bin
    const std::array<std::int64_t, kBins>& bins() const { return bins_; }

  private:
    void reach(Ps end) {
        while ((end >> shift_) >= static_cast<Ps>(kBins)) widen();
    }
    void widen() {
        for (std::size_t i = 0; i < kBins / 2; ++i) bins_[i] = bins_[2 * i] + bins_[2 * i + 1];
        for (std::size_t i = kBins / 2; i < kBins; ++i) bins_[i] = 0;
        ++shift_;
    }

    int shift_ = 16;  ///< a bin is 2^shift_ ps: 65 ns at first
    std::array<std::int64_t, kBins> bins_{};
};

/// When a link carried flits: how many in all, and how busy it was over time.
class Busy {
  public:
    /// Flits that took the link from `begin` to `end`. Calls are in the order of `end`, nearly.
    void add(Ps begin, Ps end, std::int64_t flits) {
        flits_ += flits;
        time_.spread(begin, end, 1);
    }

    std::int64_t flits() const { return flits_; }
    Ps width() const { return time_.width(); }  ///< width of a bin
    const std::array<Ps, 64>& bins() const { return time_.bins(); }

  private:
    std::int64_t flits_ = 0;
    TimeBins<64> time_;
};

}  // namespace moehub::sim
