/// An operator replayed alone in a CUDA graph takes max(floor, replay + kernels): between the two
/// events the host needs the floor to send off any graph; a graph that outlasts this adds `replay`
/// to its kernels. Among others in a graph an operator takes its kernels alone.
#include "base/portable_math.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <moehub/operators.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moehub {
namespace {

constexpr std::int64_t kMostRows = 1'000'000'000;  ///< of any dimension
constexpr std::int64_t kMostGroups = 1'000'000;
constexpr std::int64_t kFanIn = 8;  ///< experts per token in gather_rows and sum8_rows
constexpr double kElement = 2;      ///< bytes of a bf16
constexpr double kLongest = 1e6;    ///< seconds; the clock counts to nine times that

bool within(std::int64_t value) {
    return value >= 1 && value <= kMostRows;
}

std::optional<double> kernel_seconds(const Gpu& gpu, const Operator& op) {
    if (!within(op.rows)) return std::nullopt;
    if (op.op == "argsort") return sort_seconds(gpu, op.rows);
    if (!within(op.k)) return std::nullopt;
    const double width = kElement * static_cast<double>(op.k);
    if (op.op == "gather_rows") {
        const std::int64_t table = std::max<std::int64_t>(1, op.rows / kFanIn);
        return replayed_stream_seconds(gpu, gather_traffic(gpu, {op.rows, table, width}));
    }
    if (op.op == "sum8_rows")
        return replayed_stream_seconds(gpu, sum_traffic(op.rows, kFanIn, width));
    if (!within(op.n)) return std::nullopt;
    if (op.op == "gemm") return plan_seconds(gpu, plan_gemm(gpu, {op.rows, op.k, op.n}));
    const bool grouped = op.op == "grouped_gemm" && op.groups >= 1 && op.groups <= kMostGroups;
    if (!grouped || !(op.skew >= 0) || !std::isfinite(op.skew)) return std::nullopt;
    const auto rows = rows_per_group({op.groups, op.rows, op.max_rows, op.skew});
    return plan_seconds(gpu, plan_grouped_gemm(gpu, {rows, op.k, op.n}));
}

}  // namespace

std::optional<Ps> predict(const Gpu& gpu, const Operator& op) {
    const std::optional<double> seconds = kernel_seconds(gpu, op);
    if (!seconds) return std::nullopt;
    const double replay = to_seconds(gpu.kernels.graph_replay) + *seconds;
    if (!(replay < kLongest)) return std::nullopt;
    const auto replayed = static_cast<Ps>(std::llround(replay * static_cast<double>(kSecond)));
    return std::max(gpu.kernels.graph_replay_floor, replayed);
}

// Rows were drawn one by one, group i with probability ∝ (i+1)^-skew. The fullest group has
// max_rows; the others share the rest in proportion to their probability, each at one quantile of
// its Poisson distribution (normal above 40 rows). The quantiles are u_i = frac(i · 0.618…), the
// golden-ratio sequence: evenly spread for any number of groups, so that the share of empty groups
// and of groups just above a tile's edge is that of a typical draw. What is then missing or too
// much is spread by expectation.

namespace {

constexpr double kGolden = 0.6180339887498949;
constexpr double kNormalFrom = 40;
constexpr double kLogisticScale = 1.702;  ///< the logistic curve closest to the normal one
constexpr int kMostPoisson = 500;

std::int64_t count_at(double mean, double u) {
    if (mean >= kNormalFrom) {
        const double z = portable_log(u / (1 - u)) / kLogisticScale;
        return std::max<std::int64_t>(0,
                                      std::llround(std::floor(mean + std::sqrt(mean) * z + 0.5)));
    }
    double term = portable_exp(-mean);
    double total = term;
    int count = 0;
    while (total < u && count < kMostPoisson) {
        ++count;
        term *= mean / count;
        total += term;
    }
    return count;
}

std::int64_t missing(const std::vector<std::int64_t>& counts, std::int64_t rows) {
    return rows - std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// In proportion to the means first, then one row at a time.
void spread_missing(std::vector<std::int64_t>& counts, const std::vector<double>& means,
                    const GroupSpread& spread) {
    const auto rest = static_cast<double>(spread.rows - counts[0]);
    const auto surplus = static_cast<double>(missing(counts, spread.rows));
    double carry = 0;
    for (std::size_t i = 1; i < counts.size(); ++i) {
        if (rest > 0) carry += surplus * means[i] / rest;
        const auto step = static_cast<std::int64_t>(std::floor(carry + 0.5));
        const std::int64_t wanted = std::clamp<std::int64_t>(counts[i] + step, 0, counts[0]);
        carry -= static_cast<double>(wanted - counts[i]);
        counts[i] = wanted;
    }
    std::int64_t left = missing(counts, spread.rows);
    for (std::size_t i = 1, idle = 0; left != 0 && idle < counts.size();) {
        const std::int64_t step = left > 0 ? 1 : -1;
        const std::int64_t wanted = counts[i] + step;
        const bool fits = wanted >= 0 && wanted <= counts[0];
        if (fits) {
            counts[i] = wanted;
            left -= step;
        }
        idle = fits ? 0 : idle + 1;
        i = i + 1 < counts.size() ? i + 1 : 1;
    }
}

}  // namespace

std::vector<std::int64_t> rows_per_group(const GroupSpread& spread) {
    if (spread.groups <= 1) return {spread.rows};
    const auto groups = static_cast<std::size_t>(spread.groups);
    const std::int64_t even = spread.rows / spread.groups + (spread.rows % spread.groups != 0);
    const std::int64_t most = std::clamp(spread.max_rows, even, spread.rows);

    std::vector<double> means(groups);
    double sum = 0;
    for (std::size_t i = 0; i < groups; ++i) {
        means[i] = portable_exp(-spread.skew * portable_log(static_cast<double>(i) + 1));
        if (i > 0) sum += means[i];
    }
    const double scale = static_cast<double>(spread.rows - most) / sum;
    std::vector<std::int64_t> counts = {most};
    for (std::size_t i = 1; i < groups; ++i) {
        means[i] *= scale;
        const double u = std::fmod(static_cast<double>(i) * kGolden, 1.0);
        counts.push_back(std::min(most, count_at(means[i], u)));
    }
    spread_missing(counts, means, spread);
    return counts;
}

}  // namespace moehub
