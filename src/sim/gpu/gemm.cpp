/// cuBLAS on Hopper (kernels nvjet_sm90_*) computes tiles of 16…192 rows and 64…320 columns, one
/// per SM at a time, and for skinny shapes cuts k into parts that a second kernel adds. Its choice
/// is not published; here it is the tile and the split with the smallest
///
///     T = Σ waves + (split > 1: reduce + split · rows · n · 4 B / HBM rate),
///
/// and of what is then still to be sent, over the tile shapes seen in profiles of an H200. A tile's
/// share of HBM is 1/tiles of the operator's bytes, less what the previous replay left in L2.
#include "sim/gpu/gemm.hpp"

#include "base/portable_math.hpp"
#include "sim/kernels/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

namespace moehub {
namespace {

/// The tiles that PyTorch's cuBLAS takes.
constexpr auto kTiles = std::span(kHopperTiles).first<19>();
constexpr std::int64_t kLeastRows = 16;
constexpr std::int64_t kLeastPart = 512;  ///< least of k in one part of a split

GemmPlan cut_gemm(const Gpu& gpu, const GemmShape& shape, const GemmTile& tile,
                  std::int64_t split) {
    const auto rows = static_cast<double>(shape.rows);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    const auto down = static_cast<double>(pieces_of(shape.rows, tile.rows));
    const auto across = static_cast<double>(pieces_of(shape.n, tile.cols));
    const auto parts = static_cast<double>(split);
    const double tiles = down * across * parts;
    const double depth = k / parts;
    const double area = static_cast<double>(tile.rows) * static_cast<double>(tile.cols);
    const double in = shape.fp8 ? 1 : 2;  // bytes of an element of weights and inputs
    const double out = 2 * shape.stored;  // bytes that an element of the result leaves behind
    const double footprint = in * k * n + rows * (in * k + out * n + shape.beside);

    GemmPlan plan;
    plan.tile_rows = tile.rows;
    plan.tile_cols = tile.cols;
    plan.tiles_across = pieces_of(shape.n, tile.cols);
    plan.split = split;
    plan.slots = gpu.sms;
    plan.rates = {shape.fp8 ? gpu.kernels.fp8_load : gpu.kernels.gemm_load, gpu.kernels.gemm_store,
                  gpu.kernels.hbm_efficiency * gpu.hbm_bandwidth};
    plan.runs = {
        {static_cast<std::int64_t>(tiles),
         0,
         {.flops = (shape.fp8 ? fp8_work(gpu, gpu.kernels.fp8_efficiency) : 1) * 2 * area * depth,
          .load_bytes = in * depth * (rows / down + n / across),
          .hbm_bytes = (shape.cold ? 1 : 1 - l2_hit(gpu, footprint)) * footprint / tiles,
          .store_bytes = out * area,
          .sms = 1}}};
    plan.weight_bytes = in * depth * n / across;
    plan.row_bytes = rows * (in * k + out * n + shape.beside) / tiles;
    plan.start = to_seconds(gpu.kernels.gemm_start);
    if (split > 1)
        plan.finish =
            to_seconds(gpu.kernels.split_k_reduce) + parts * rows * n * 4 / plan.rates.hbm;
    return plan;
}

/// What is still to be sent when the last tiles are done: the rows that were finished with them.
double sending(const GemmShape& shape, const GemmPlan& plan) {
    const std::int64_t blocks = std::max<std::int64_t>(1, plan.slots / plan.tiles_across);
    const std::int64_t rows =
        plan.split > 1 ? shape.rows : std::min(shape.rows, blocks * plan.tile_rows);
    return static_cast<double>(rows) * shape.send_row;
}

bool sensible(const Gpu& gpu, const GemmShape& shape, const GemmTile& tile, std::int64_t split) {
    if (shape.tile_rows > 0 ? tile.rows != shape.tile_rows
                            : tile.rows >= 2 * std::max(kLeastRows, shape.rows))
        return false;
    if (split == 1) return true;
    const double tiles = static_cast<double>(pieces_of(shape.rows, tile.rows)) *
                         static_cast<double>(pieces_of(shape.n, tile.cols));
    return shape.k >= kLeastPart * split && tiles * static_cast<double>(split) <= 2.0 * gpu.sms;
}

// torch._grouped_mm on Hopper runs one of two CUTLASS kernels (PyTorch, GroupMM.cu): with at most
// 128 rows per group on average, or n ≤ 128, tiles of 64 × 128 in the ping-pong schedule,
// otherwise 128 × 256 in the cooperative one. Either way two SMs form a cluster along the rows and
// share the weights they load, so the unit of work is a pair of tiles, padded where a group's rows
// end: ⌈rows / (2 · tile rows)⌉ · ⌈n / tile columns⌉ pairs per group, none for an empty group,
// pulled in order by sms / 2 clusters. Each group's weights, inputs and outputs cross HBM once,
// less what the previous replay left in L2; the pieces of weights a tile reads are 128 bytes wide
// and a whole row of n apart (`hbm_narrow`). torch._scaled_grouped_mm is taken to cut FP8 alike.

constexpr std::int64_t kSmall = 128;
constexpr int kCluster = 2;

/// What of its elements reaches a tile, and what an operation costs beside one of bf16.
struct Cost {
    double element = 2;  ///< bytes, of weights and inputs
    double miss = 1;     ///< share of the bytes that comes from HBM
    double work = 1;
    double out = 2;  ///< bytes that an element of the result leaves behind
};

TileRun group_tiles(const GroupedShape& shape, std::size_t group, const GemmPlan& plan,
                    const Cost& cost) {
    const auto k = static_cast<double>(shape.k);
    const auto n = static_cast<double>(shape.n);
    const auto rows = static_cast<double>(shape.rows[group]);
    const std::int64_t down = pieces_of(shape.rows[group], kCluster * plan.tile_rows);
    const std::int64_t across = pieces_of(shape.n, plan.tile_cols);
    const auto tile_rows = static_cast<double>(plan.tile_rows);
    const auto tile_cols = static_cast<double>(plan.tile_cols);
    const double valid = std::min(rows / static_cast<double>(down), tile_rows);
    const auto pairs = static_cast<double>(down) * static_cast<double>(across);
    return {static_cast<std::int64_t>(pairs),
            static_cast<std::int64_t>(group),
            {.flops = cost.work * kCluster * 2 * tile_rows * tile_cols * k,
             .load_bytes = cost.element * k * (tile_cols + valid),
             .hbm_bytes =
                 cost.miss *
                 (cost.element * k * n + rows * (cost.element * k + cost.out * n + shape.beside)) /
                 pairs,
             .store_bytes = cost.out * tile_rows * tile_cols,
             .sms = kCluster}};
}

// Rows were drawn one by one, group i with probability ∝ (i+1)^-skew. The fullest group has
// max_rows; the others share the rest in proportion to their probability, each at one quantile of
// its Poisson distribution (normal above 40 rows). The quantiles are u_i = frac(i · 0.618…), the
// golden-ratio sequence: evenly spread for any number of groups, so that the share of empty groups
// and of groups just above a tile's edge is that of a typical draw. What is then missing or too
// much is spread by expectation.

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

/// Spreads missing rows in proportion to the means first, then one row at a time.
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

GemmPlan plan_gemm(const Gpu& gpu, const GemmShape& shape) {
    GemmPlan best;
    double least = -1;
    for (const GemmTile& tile : kTiles)
        for (const std::int64_t split : kSplits) {
            if (!sensible(gpu, shape, tile, split)) continue;
            GemmPlan plan = cut_gemm(gpu, shape, tile, split);
            const double seconds = tiles_seconds(gpu, plan) + plan.finish + sending(shape, plan);
            if (least >= 0 && seconds >= least) continue;
            least = seconds;
            best = std::move(plan);
        }
    return best;
}

GemmPlan plan_gemm_like(const Gpu& gpu, const GemmShape& shape, const GemmPlan& like) {
    const GemmTile tile{static_cast<int>(like.tile_rows), static_cast<int>(like.tile_cols)};
    return cut_gemm(gpu, shape, tile, like.split);
}

GemmPlan plan_grouped_gemm(const Gpu& gpu, const GroupedShape& shape) {
    const auto groups = static_cast<std::int64_t>(shape.rows.size());
    const std::int64_t rows =
        std::accumulate(shape.rows.begin(), shape.rows.end(), std::int64_t{0});
    const auto used =
        std::count_if(shape.rows.begin(), shape.rows.end(), [](std::int64_t r) { return r > 0; });
    const auto k = static_cast<double>(shape.k);
    const auto n = static_cast<double>(shape.n);
    Cost cost;
    if (shape.fp8) cost = {1, 1, fp8_work(gpu, gpu.kernels.fp8_grouped_efficiency), 2};
    cost.out = 2 * shape.stored;
    const double footprint =
        cost.element * static_cast<double>(used) * k * n +
        static_cast<double>(rows) * (cost.element * k + cost.out * n + shape.beside);
    cost.miss = shape.cold ? 1 : 1 - l2_hit(gpu, footprint);

    const bool small = rows / std::max<std::int64_t>(groups, 1) <= kSmall || shape.n <= kSmall;
    GemmPlan plan;
    plan.tile_rows = small ? 64 : 128;
    plan.tile_cols = small ? 128 : 256;
    plan.tiles_across = pieces_of(shape.n, plan.tile_cols);
    plan.slots = std::max(1, gpu.sms / kCluster);
    plan.rates = {shape.fp8 ? gpu.kernels.fp8_grouped_load : gpu.kernels.grouped_load,
                  gpu.kernels.grouped_store, gpu.kernels.hbm_narrow * gpu.hbm_bandwidth};
    plan.start = to_seconds(shape.fp8 ? gpu.kernels.fp8_grouped_start : gpu.kernels.grouped_start);
    for (std::size_t group = 0; group < shape.rows.size(); ++group)
        if (shape.rows[group] > 0) plan.runs.push_back(group_tiles(shape, group, plan, cost));
    return plan;
}

/// The cooperative kernel, whose store does not hide behind the next tile's products. All SMs store
/// as many bytes as they like, but in pieces as narrow as those of the weights: HBM takes less.
GemmPlan plan_grouped_gradient(const Gpu& gpu, const GroupedShape& shape) {
    GemmPlan plan;
    plan.tile_rows = 128;
    plan.tile_cols = 256;
    plan.tiles_across = pieces_of(shape.n, plan.tile_cols);
    plan.slots = std::max(1, gpu.sms / kCluster);
    const double hbm = gpu.kernels.hbm_narrow * gpu.hbm_bandwidth;
    plan.rates = {gpu.kernels.grouped_load, std::min(gpu.kernels.grouped_store, hbm / gpu.sms),
                  hbm};
    plan.start = to_seconds(gpu.kernels.grouped_start);
    const std::int64_t pairs = pieces_of(shape.k, kCluster * plan.tile_rows) * plan.tiles_across;
    const auto area = static_cast<double>(plan.tile_rows * plan.tile_cols);
    const auto edges = static_cast<double>(plan.tile_rows + plan.tile_cols);
    const auto sides = static_cast<double>(shape.k + shape.n);
    for (std::size_t group = 0; group < shape.rows.size(); ++group) {
        const auto rows = static_cast<double>(shape.rows[group]);
        plan.runs.push_back({pairs,
                             static_cast<std::int64_t>(group),
                             {.flops = kCluster * 2 * area * rows,
                              .load_bytes = 2 * rows * edges,
                              .hbm_bytes = 2 * rows * sides / static_cast<double>(pairs),
                              .store_bytes = 2 * area,
                              .sms = kCluster}});
    }
    return plan;
}

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
