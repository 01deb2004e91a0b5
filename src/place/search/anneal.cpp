#include "base/portable_math.hpp"
#include "place/search/search.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace moehub {
namespace {

/// −ln of uniform numbers, tabled: the logarithm of every proposal would cost more than the rest.
class NegativeLogs {
  public:
    NegativeLogs() {
        for (std::size_t at = 0; at < table_.size(); ++at)
            table_[at] =
                -portable_log((static_cast<double>(at) + 0.5) / static_cast<double>(kSize));
    }
    double operator()(std::uint64_t bits) const { return table_[bits % kSize]; }

  private:
    static constexpr std::size_t kSize = 1024;
    std::array<double, kSize> table_;
};

/// A swap of two random items, which may be on one GPU, and ten random bits.
struct Proposal {
    Search::Swap swap;
    std::uint64_t bits;
};
Proposal propose(const Search& search, Rng& rng) {
    constexpr std::uint64_t kBits = 24;
    constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;
    const int layer =
        search.layers() == 1
            ? 0
            : static_cast<int>(rng.below(static_cast<std::uint64_t>(search.layers())));
    const auto items = static_cast<std::uint64_t>(search.items(layer));
    const std::uint64_t random = rng.next();
    return {{layer, static_cast<int>((random & kMask) * items >> kBits),
             static_cast<int>((random >> kBits & kMask) * items >> kBits)},
            random >> (2 * kBits)};
}

bool apart(const Search& search, const Search::Swap& swap) {
    const std::vector<int>& gpu_of = search.gpu_of(swap.layer);
    return gpu_of[at(swap.a)] != gpu_of[at(swap.b)];
}

/// Mean change, up or down, of swaps that are allowed.
double usual_change(const Search& search, Rng& rng) {
    constexpr int kTries = 2000;
    constexpr int kEnough = 200;
    double sum = 0;
    int count = 0;
    for (int tries = 0; tries < kTries && count < kEnough; ++tries) {
        const Search::Swap swap = propose(search, rng).swap;
        if (!apart(search, swap) || !search.allows(swap)) continue;
        sum += std::abs(search.change(swap));
        ++count;
    }
    return count > 0 ? sum / count : 0;
}

}  // namespace

bool anneal(Search& search, const Schedule& schedule, Rng& rng,
            const std::function<bool()>& stopped) {
    constexpr int kEvery = 256;
    const NegativeLogs draws;
    const double asked = search.proposal_cost();
    const double taken = search.swap_cost();
    const double usual = usual_change(search, rng);
    if (usual <= 0) return true;
    const double cooling = portable_log(schedule.cold / schedule.hot);
    for (double work = 0; work < schedule.work;) {
        if (stopped()) return false;
        const double temperature =
            usual * schedule.hot * portable_exp(cooling * work / schedule.work);
        for (int count = 0; count < kEvery; ++count) {
            work += asked;
            const Proposal proposal = propose(search, rng);
            const Search::Swap& swap = proposal.swap;
            const double most = temperature * draws(proposal.bits);
            if (!apart(search, swap) || search.least_change(swap) > most || !search.allows(swap) ||
                search.change(swap) > most)
                continue;
            search.apply(swap);
            work += taken;
        }
    }
    return true;
}

bool descend(Search& search, const std::function<bool()>& stopped) {
    const double less = -1e-12 * std::max(1.0, std::abs(search.energy()));  // else it is rounding
    for (bool better = true; better;) {
        better = false;
        for (int layer = 0; layer < search.layers(); ++layer)
            for (int a = 0; a < search.items(layer); ++a) {
                if (stopped()) return false;
                for (int b = 0; b < a; ++b) {
                    const Search::Swap swap{layer, a, b};
                    if (!apart(search, swap) || search.least_change(swap) >= less ||
                        !search.allows(swap) || search.change(swap) >= less)
                        continue;
                    search.apply(swap);
                    better = true;
                }
            }
    }
    return true;
}

}  // namespace moehub
