/// When a link carried flits: how many in all, and how busy it was over time.
///
/// Time is cut into kBins equal bins; when it runs beyond them, bins are joined in pairs, so the
/// record stays small and its width follows the run's length.
#pragma once
#include <moehub/units.hpp>

#include <array>
#include <cstdint>

namespace moehub::sim {

class Busy {
  public:
    static constexpr int kBins = 64;

    /// Flits that took the link from `begin` to `end`. Calls are in the order of `end`, nearly.
    void add(Ps begin, Ps end, std::int64_t flits) {
        flits_ += flits;
        while ((end >> shift_) >= kBins) widen();
        const Ps last = end >> shift_;
        if (begin < 0) begin = 0;
        for (Ps bin = begin >> shift_; bin < last; ++bin) {
            const Ps next = (bin + 1) << shift_;
            bins_[static_cast<std::size_t>(bin)] += next - begin;
            begin = next;
        }
        bins_[static_cast<std::size_t>(last)] += end - begin;
    }

    std::int64_t flits() const { return flits_; }
    Ps width() const { return Ps{1} << shift_; }  ///< of a bin
    const std::array<Ps, kBins>& bins() const { return bins_; }

  private:
    void widen() {
        for (std::size_t i = 0; i < kBins / 2; ++i) bins_[i] = bins_[2 * i] + bins_[2 * i + 1];
        for (std::size_t i = kBins / 2; i < kBins; ++i) bins_[i] = 0;
        ++shift_;
    }

    std::int64_t flits_ = 0;
    int shift_ = 16;  ///< a bin is 2^shift_ ps: 65 ns at first
    std::array<Ps, kBins> bins_{};
};

}  // namespace moehub::sim
