// A co-activation of a < b counted n times has the lift n / (s x_a x_b), x the loads, s such that
// all pairs a < b sum to what was counted; a transition n N / (r c), N in all.
// What chance gives is measured: the same count with each token's second choice taken from a token
// half the sample away. That has the loads and the noise of the first, and nothing else. (Within a
// layer, where no expert goes with itself, it is right within a few percent.)
#include "base/portable_math.hpp"
#include "place/profile/profile_summary_parts.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

namespace moehub {
namespace {

/// How many cells hold 0, 1, 2, … pairs: sums over cells become sums over the few values they have.
using Histogram = std::vector<std::int64_t>;

struct Margins {
    std::vector<std::int64_t> rows;
    std::vector<std::int64_t> columns;
    std::int64_t all = 0;
};

constexpr double kLn2 = 0.69314718055994530942;

double n_log_n(std::int64_t count) {
    const auto n = static_cast<double>(count);
    return count > 1 ? n * portable_log(n) : 0;
}

double sum_n_log_n(const std::vector<std::int64_t>& counts) {
    double sum = 0;
    for (const std::int64_t count : counts) sum += n_log_n(count);
    return sum;
}

std::int64_t total_of(const PairCounts& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

Histogram histogram_of(const PairCounts& counts) {
    Histogram cells(*std::max_element(counts.begin(), counts.end()) + std::size_t{1}, 0);
    for (const std::uint32_t count : counts) ++cells[count];
    return cells;
}

/// Share of the pairs in the heaviest tenth of `cells`; what the histogram has beyond that many
/// holds nothing. 0 without pairs.
double heaviest_tenth(const Histogram& histogram, std::size_t cells) {
    double left = static_cast<double>(cells) / 10;
    double heaviest = 0, all = 0;
    for (std::size_t value = histogram.size() - 1; value > 0; --value) {
        const auto here = static_cast<double>(histogram[value]);
        const double taken = std::min(left, here);
        left -= taken;
        heaviest += taken * static_cast<double>(value);
        all += here * static_cast<double>(value);
    }
    return all > 0 ? heaviest / all : 0;
}

Margins margins_of(const PairCounts& counts, std::size_t experts) {
    Margins margins{std::vector<std::int64_t>(experts, 0), std::vector<std::int64_t>(experts, 0)};
    for (std::size_t a = 0; a < experts; ++a)
        for (std::size_t b = 0; b < experts; ++b) {
            margins.rows[a] += counts[a * experts + b];
            margins.columns[b] += counts[a * experts + b];
        }
    margins.all = std::accumulate(margins.rows.begin(), margins.rows.end(), std::int64_t{0});
    return margins;
}

/// Mutual information of row and column, in bits: of pairs (a, b) counted n times, N in all, r and
/// c the sums of rows and columns,
///     Σ n/N · log2(n N / (r c)) = (Σ n ln n − Σ r ln r − Σ c ln c) / (N ln 2) + log2 N.
double information_bits(const Margins& margins, const Histogram& histogram) {
    if (margins.all == 0) return 0;
    double cells = 0;
    for (std::size_t value = 2; value < histogram.size(); ++value)
        if (histogram[value] > 0)
            cells +=
                static_cast<double>(histogram[value]) * n_log_n(static_cast<std::int64_t>(value));
    const double nats = (cells - sum_n_log_n(margins.rows) - sum_n_log_n(margins.columns)) /
                            static_cast<double>(margins.all) +
                        portable_log(static_cast<double>(margins.all));
    return std::max(0.0, nats / kLn2);
}

/// How often a < b are chosen together if loads alone decide.
class CoactiveChance {
  public:
    CoactiveChance(const PairCounter& counter, int layer) {
        double sum = 0, squares = 0;
        for (const std::int64_t load : counter.loads(layer)) {
            const auto x = static_cast<double>(load);
            loads_.push_back(x);
            sum += x;
            squares += x * x;
        }
        products_ = (sum * sum - squares) / 2;
    }
    /// Expected count of a and b where `pairs` were counted in all.
    double operator()(std::size_t a, std::size_t b, std::int64_t pairs) const {
        return products_ > 0 ? static_cast<double>(pairs) * loads_[a] * loads_[b] / products_ : 0;
    }

  private:
    std::vector<double> loads_;
    double products_ = 0;  ///< sum of loads' products over all a < b
};

/// The few pairs that exceed chance by most; of equal ones the first found.
class FarthestAbove {
  public:
    explicit FarthestAbove(int most) : most_(at(std::max(most, 0))) {}

    void offer(const CoactivePair& pair, double chance) {
        const double excess = static_cast<double>(pair.together) - chance;
        if (!(excess > least())) return;
        const auto position =
            std::upper_bound(found_.begin(), found_.end(), excess,
                             [](double value, const Found& one) { return value > one.excess; });
        found_.insert(position, {pair, excess, chance});
        if (found_.size() > most_) found_.pop_back();
    }
    void tell(CoactivationSummary& summary) const {
        const auto pairs = static_cast<double>(summary.pairs);
        for (const Found& one : found_) {
            summary.top.push_back(one.pair);
            summary.top_share += static_cast<double>(one.pair.together) / pairs;
            summary.top_share_by_chance += one.chance / pairs;
        }
    }

  private:
    struct Found {
        CoactivePair pair;
        double excess;
        double chance;
    };
    double least() const {
        if (most_ == 0) return std::numeric_limits<double>::infinity();
        return found_.size() < most_ ? 0 : found_.back().excess;
    }
    std::size_t most_;
    std::vector<Found> found_;
};

}  // namespace

CoactivationSummary coactivation_summary(PairCounter& counter, int layer, int top_pairs) {
    CoactivationSummary summary;
    const std::size_t experts = counter.experts();
    const CoactiveChance chance(counter, layer);
    const PairCounts& counts = counter.coactive(layer, Partner::itself);
    summary.pairs = total_of(counts);
    FarthestAbove top(top_pairs);
    for (std::size_t a = 0; a < experts; ++a)
        for (std::size_t b = a + 1; b < experts; ++b) {
            const std::int64_t together = counts[a * experts + b];
            if (together == 0) continue;
            const double expected = chance(a, b, summary.pairs);
            top.offer({static_cast<int>(a), static_cast<int>(b), together,
                       static_cast<double>(together) / expected},
                      expected);
        }
    top.tell(summary);
    const std::size_t cells = experts * (experts - 1) / 2;
    summary.concentration.heaviest_tenth = heaviest_tenth(histogram_of(counts), cells);
    summary.concentration.by_chance =
        heaviest_tenth(histogram_of(counter.coactive(layer, Partner::far_away)), cells);
    return summary;
}

TransitionSummary transition_summary(PairCounter& counter, int layer,
                                     const std::vector<int>& gpu_of) {
    TransitionSummary summary;
    const std::size_t experts = counter.experts();
    const PairCounts& counts = counter.transitions(layer, Partner::itself);
    summary.transitions = total_of(counts);
    std::int64_t off = 0;
    for (std::size_t a = 0; a < experts; ++a)
        for (std::size_t b = 0; b < experts; ++b)
            if (gpu_of[a] != gpu_of[b]) off += counts[a * experts + b];
    if (summary.transitions > 0)
        summary.off_gpu = static_cast<double>(off) / static_cast<double>(summary.transitions);
    const auto tell = [&](double& information, double& concentration) {
        const Histogram histogram = histogram_of(counts);
        information = information_bits(margins_of(counts, experts), histogram);
        concentration = heaviest_tenth(histogram, counts.size());
    };
    tell(summary.information, summary.concentration.heaviest_tenth);
    counter.transitions(layer, Partner::far_away);  // into the same matrix
    tell(summary.information_by_chance, summary.concentration.by_chance);
    return summary;
}

std::vector<double> coactivation_lift(PairCounter& counter, int layer) {
    const std::size_t experts = counter.experts();
    const CoactiveChance chance(counter, layer);
    const PairCounts& counts = counter.coactive(layer, Partner::itself);
    const std::int64_t pairs = total_of(counts);
    std::vector<double> lift(experts * experts, 0.0);
    for (std::size_t a = 0; a < experts; ++a)
        for (std::size_t b = a + 1; b < experts; ++b) {
            const double expected = chance(a, b, pairs);
            if (expected > 0)
                lift[a * experts + b] = lift[b * experts + a] = counts[a * experts + b] / expected;
        }
    return lift;
}

std::vector<double> transition_lift(PairCounter& counter, int layer) {
    const std::size_t experts = counter.experts();
    const PairCounts& counts = counter.transitions(layer, Partner::itself);
    const Margins margins = margins_of(counts, experts);
    std::vector<double> lift(experts * experts, 0.0);
    for (std::size_t a = 0; a < experts; ++a)
        for (std::size_t b = 0; b < experts; ++b) {
            const double product =
                static_cast<double>(margins.rows[a]) * static_cast<double>(margins.columns[b]);
            if (product > 0)
                lift[a * experts + b] =
                    counts[a * experts + b] * static_cast<double>(margins.all) / product;
        }
    return lift;
}

}  // namespace moehub
