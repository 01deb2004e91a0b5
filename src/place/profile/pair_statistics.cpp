// Pairs (a, b) counted n times, N in all, r and c the sums of rows and columns.
//   mutual information  Σ n/N · log2(n N / (r c))
//                       = (Σ n ln n − Σ r ln r − Σ c ln c) / (N ln 2) + log2 N
#include "place/profile/pair_statistics.hpp"

#include "base/portable_math.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

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

}  // namespace

std::int64_t total_of(const PairCounts& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

Histogram histogram_of(const PairCounts& counts) {
    Histogram cells(*std::max_element(counts.begin(), counts.end()) + std::size_t{1}, 0);
    for (const std::uint32_t count : counts) ++cells[count];
    return cells;
}

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

}  // namespace moehub
