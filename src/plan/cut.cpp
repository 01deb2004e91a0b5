/// Pieces of a pipeline: the smallest T so that taking units in order, as many as fit into T, needs
/// no more pieces than there are. Units come in runs of equal ones, so a piece takes several at
/// once.
#include "plan/units.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

constexpr int kHalvings = 40;

/// Takes units piece by piece; every piece leaves at least one unit for each that follows.
class Cutter {
  public:
    Cutter(const UnitCounts& all, const std::array<double, kUnits>& seconds)
        : all_(all), seconds_(seconds) {}

    /// False when units are left over.
    bool run(double most, int pieces, std::vector<UnitCounts>& out) const {
        UnitCounts left = all_;
        int remaining = std::accumulate(left.begin(), left.end(), 0);
        std::size_t at = 0;
        out.assign(static_cast<std::size_t>(pieces), UnitCounts{});
        for (int piece = 0; piece < pieces; ++piece) {
            const int others = pieces - piece - 1;
            double taken = 0;
            UnitCounts& into = out[static_cast<std::size_t>(piece)];
            int count = 0;
            while (at < kUnits && remaining > others) {
                if (left[at] == 0) {
                    ++at;
                    continue;
                }
                if (count > 0 && taken + seconds_[at] > most) break;
                taken += seconds_[at];
                --left[at];
                --remaining;
                ++into[at];
                ++count;
            }
            if (taken > most) return false;
        }
        return remaining == 0;
    }

  private:
    UnitCounts all_;
    std::array<double, kUnits> seconds_;
};

}  // namespace

UnitCounts units_of(const TrainingRun& run) {
    const Model& m = run.model;
    const int moe = m.moe_layers();
    return {1, m.layers - moe, moe, run.mtp ? m.mtp_layers : 0, 1};
}

int unit_count(const TrainingRun& run) {
    const UnitCounts all = units_of(run);
    return std::accumulate(all.begin(), all.end(), 0);
}

std::vector<UnitCounts> cut(const UnitCounts& all, int pieces,
                            const std::array<double, kUnits>& seconds) {
    std::vector<UnitCounts> result;
    if (pieces == 1) return {all};
    const Cutter cutter(all, seconds);
    double high = 0;
    double low = 0;
    for (std::size_t i = 0; i < kUnits; ++i) {
        high += all[i] * seconds[i];
        if (all[i] > 0) low = std::max(low, seconds[i]);
    }
    low = std::max(low, high / pieces) * (1 - 1e-9);
    for (int i = 0; i < kHalvings && high - low > 1e-6 * high; ++i) {
        const double middle = (low + high) / 2;
        (cutter.run(middle, pieces, result) ? high : low) = middle;
    }
    cutter.run(high * (1 + 1e-9), pieces, result);
    return result;
}

}  // namespace moehub
