/// cuBLAS on Hopper (kernels nvjet_sm90_*) computes tiles of 16…192 rows and 64…320 columns, one
/// per SM at a time, and for skinny shapes cuts k into parts that a second kernel adds. Its choice
/// is not published; here it is the tile and the split with the smallest
///
///     T = Σ waves + (split > 1: reduce + split · rows · n · 4 B / HBM rate),
///
/// and of what is then still to be sent, over the tile shapes seen in profiles of an H200. A tile's
/// share of HBM is 1/tiles of the operator's bytes, less what the previous replay left in L2.
#include "sim/gpu/gemm.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace moehub {
namespace {

using Tile = std::pair<std::int64_t, std::int64_t>;

constexpr std::array<Tile, 19> kTiles = {{{16, 64},
                                          {32, 64},
                                          {64, 64},
                                          {96, 64},
                                          {128, 64},
                                          {192, 64},
                                          {16, 128},
                                          {32, 128},
                                          {64, 96},
                                          {64, 128},
                                          {128, 96},
                                          {128, 128},
                                          {64, 192},
                                          {64, 256},
                                          {192, 128},
                                          {128, 192},
                                          {128, 256},
                                          {192, 192},
                                          {128, 320}}};
constexpr std::array<std::int64_t, 6> kSplits = {1, 2, 3, 4, 6, 8};
constexpr std::int64_t kLeastRows = 16;
constexpr std::int64_t kLeastDepth = 512;  ///< of k in one part of a split

std::int64_t pieces(std::int64_t whole, std::int64_t piece) {
    return (whole - 1) / piece + 1;
}

GemmPlan cut(const Gpu& gpu, const GemmShape& shape, const Tile& tile, std::int64_t split) {
    const auto rows = static_cast<double>(shape.rows);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    const auto down = static_cast<double>(pieces(shape.rows, tile.first));
    const auto across = static_cast<double>(pieces(shape.n, tile.second));
    const auto parts = static_cast<double>(split);
    const double tiles = down * across * parts;
    const double depth = k / parts;
    const double area = static_cast<double>(tile.first) * static_cast<double>(tile.second);
    const double in = shape.fp8 ? 1 : 2;  // bytes of an element of weights and inputs
    const double out = 2 * shape.stored;  // bytes that an element of the result leaves behind
    const double footprint = in * k * n + rows * (in * k + out * n + shape.beside);

    GemmPlan plan;
    plan.tile_rows = tile.first;
    plan.tile_cols = tile.second;
    plan.tiles_across = pieces(shape.n, tile.second);
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

bool sensible(const Gpu& gpu, const GemmShape& shape, const Tile& tile, std::int64_t split) {
    if (shape.tile_rows > 0 ? tile.first != shape.tile_rows
                            : tile.first >= 2 * std::max(kLeastRows, shape.rows))
        return false;
    if (split == 1) return true;
    const double tiles = static_cast<double>(pieces(shape.rows, tile.first)) *
                         static_cast<double>(pieces(shape.n, tile.second));
    return shape.k >= kLeastDepth * split && tiles * static_cast<double>(split) <= 2.0 * gpu.sms;
}

}  // namespace

GemmPlan plan_gemm(const Gpu& gpu, const GemmShape& shape) {
    GemmPlan best;
    double least = -1;
    for (const Tile& tile : kTiles)
        for (const std::int64_t split : kSplits) {
            if (!sensible(gpu, shape, tile, split)) continue;
            GemmPlan plan = cut(gpu, shape, tile, split);
            const double seconds = tiles_seconds(gpu, plan) + plan.finish + sending(shape, plan);
            if (least >= 0 && seconds >= least) continue;
            least = seconds;
            best = std::move(plan);
        }
    return best;
}

GemmPlan plan_gemm_like(const Gpu& gpu, const GemmShape& shape, const GemmPlan& like) {
    return cut(gpu, shape, {like.tile_rows, like.tile_cols}, like.split);
}

}  // namespace moehub
