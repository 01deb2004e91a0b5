// Spearman: the correlation of ranks, r = Σ (a − ā)(b − b̄) / √(Σ (a − ā)² · Σ (b − b̄)²).
#include <moehub/error.hpp>
#include <moehub/plan.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moehub {
namespace {

/// Ranks from 1; equal values have the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<double> ranks(values.size());
    for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin;
        while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
        for (std::size_t i = begin; i < end; ++i)
            ranks[order[i]] = static_cast<double>(begin + 1 + end) / 2;
        begin = end;
    }
    return ranks;
}

}  // namespace

double rank_correlation(const std::vector<double>& one, const std::vector<double>& other) {
    if (one.size() != other.size())
        throw InputError("rank correlation: found lists of different lengths, allowed: the same");
    if (one.size() < 2) return 0;
    const std::vector<double> a = ranks_of(one);
    const std::vector<double> b = ranks_of(other);
    const double mean = static_cast<double>(one.size() + 1) / 2;
    double products = 0;
    double squares_a = 0;
    double squares_b = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        products += (a[i] - mean) * (b[i] - mean);
        squares_a += (a[i] - mean) * (a[i] - mean);
        squares_b += (b[i] - mean) * (b[i] - mean);
    }
    if (squares_a == 0 || squares_b == 0) return 0;
    return products / std::sqrt(squares_a * squares_b);
}

}  // namespace moehub
