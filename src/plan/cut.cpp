/// Pieces of a pipeline: the smallest T so that taking units in order, as many as fit into T, needs
/// no more pieces than there are. Then once more with each piece content with its share of what is
/// left, where that works out: else the first pieces are all as long as the longest, and their
/// stages, which keep most activations anyway, have more to do than others.
#include "plan/units.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

constexpr int kHalvings = 40;

/// Takes units piece by piece; every piece leaves at least one unit for each that follows.
class Cutter {
  public:
    enum class Take { all_that_fit, a_share };

    Cutter(const UnitCounts& all, const std::array<double, kUnits>& seconds)
        : all_(all), seconds_(seconds) {}

    /// Cuts into pieces of `most` seconds; false when units are left over.
    bool run(double most, int pieces, std::vector<UnitCounts>& out,
             Take take = Take::all_that_fit) const {
        UnitCounts left = all_;
        double ahead = std::inner_product(all_.begin(), all_.end(), seconds_.begin(), 0.0);
        int remaining = std::accumulate(left.begin(), left.end(), 0);
        std::size_t at = 0;
        out.assign(static_cast<std::size_t>(pieces), UnitCounts{});
        for (int piece = 0; piece < pieces; ++piece) {
            const int others = pieces - piece - 1;
            const double share = ahead / (others + 1);
            double taken = 0;
            UnitCounts& into = out[static_cast<std::size_t>(piece)];
            int count = 0;
            while (at < kUnits && remaining > others) {
                if (left[at] == 0) {
                    ++at;
                    continue;
                }
                if (count > 0 && taken + seconds_[at] > most) break;
                const bool has_share = taken + seconds_[at] / 2 > share;
                if (count > 0 && take == Take::a_share && has_share) break;
                taken += seconds_[at];
                --left[at];
                --remaining;
                ++into[at];
                ++count;
            }
            if (taken > most) return false;
            ahead -= taken;
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

std::int64_t micro_batches_of(const TrainingRun& run, const ParallelLayout& layout) {
    const std::int64_t group = std::int64_t{layout.tp} * layout.cp * layout.pp;
    if (run.gpus() % group != 0) return 0;
    const std::int64_t at_a_time = run.gpus() / group * layout.micro_batch;
    return run.global_batch % at_a_time == 0 ? run.global_batch / at_a_time : 0;
}

std::vector<std::size_t> pieces_of_stage(std::size_t stage, std::size_t stages, std::size_t pieces,
                                         PassOverlap overlap) {
    std::vector<std::size_t> found;
    for (std::size_t piece = stage; piece < pieces; piece += stages) found.push_back(piece);
    if (overlap == PassOverlap::dualpipe) found.push_back(stages - 1 - stage);
    return found;
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
    const double most = high * (1 + 1e-9);
    if (cutter.run(most, pieces, result, Cutter::Take::a_share)) return result;
    cutter.run(most, pieces, result);
    return result;
}

}  // namespace moehub
