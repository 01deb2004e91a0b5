/// torch._grouped_mm on Hopper runs one of two CUTLASS kernels (PyTorch, GroupMM.cu): with at most
/// 128 rows per group on average, or n ≤ 128, tiles of 64 × 128 in the ping-pong schedule,
/// otherwise 128 × 256 in the cooperative one. Either way two SMs form a cluster along the rows and
/// share the weights they load, so the unit of work is a pair of tiles, padded where a group's rows
/// end: ⌈rows / (2 · tile rows)⌉ · ⌈n / tile columns⌉ pairs per group, none for an empty group,
/// pulled in order by sms / 2 clusters. Each group's weights, inputs and outputs cross HBM once;
/// the pieces of weights a tile reads are 128 bytes wide and a whole row of n apart (`hbm_narrow`).
#include "sim/gpu/grouped_gemm.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

constexpr std::int64_t kSmall = 128;
constexpr int kCluster = 2;

TileRun group_tiles(const GroupedShape& shape, std::size_t group, const GemmPlan& plan,
                    double miss) {
    const auto k = static_cast<double>(shape.k);
    const auto n = static_cast<double>(shape.n);
    const auto rows = static_cast<double>(shape.rows[group]);
    const std::int64_t down = (shape.rows[group] - 1) / (kCluster * plan.tile_rows) + 1;
    const std::int64_t across = (shape.n - 1) / plan.tile_cols + 1;
    const auto tile_rows = static_cast<double>(plan.tile_rows);
    const auto tile_cols = static_cast<double>(plan.tile_cols);
    const double valid = std::min(rows / static_cast<double>(down), tile_rows);
    const auto pairs = static_cast<double>(down) * static_cast<double>(across);
    return {static_cast<std::int64_t>(pairs),
            static_cast<std::int64_t>(group),
            {.flops = kCluster * 2 * tile_rows * tile_cols * k,
             .load_bytes = 2 * k * (tile_cols + valid),
             .hbm_bytes = miss * (2 * k * n + 2 * rows * (k + n)) / pairs,
             .store_bytes = 2 * tile_rows * tile_cols,
             .sms = kCluster}};
}

}  // namespace

GemmPlan plan_grouped_gemm(const Gpu& gpu, const GroupedShape& shape) {
    const auto groups = static_cast<std::int64_t>(shape.rows.size());
    const std::int64_t rows =
        std::accumulate(shape.rows.begin(), shape.rows.end(), std::int64_t{0});
    const auto used =
        std::count_if(shape.rows.begin(), shape.rows.end(), [](std::int64_t r) { return r > 0; });
    const auto k = static_cast<double>(shape.k);
    const auto n = static_cast<double>(shape.n);
    const double footprint =
        2 * static_cast<double>(used) * k * n + 2 * static_cast<double>(rows) * (k + n);
    const double miss = 1 - l2_hit(gpu, footprint);

    const bool small = rows / std::max<std::int64_t>(groups, 1) <= kSmall || shape.n <= kSmall;
    GemmPlan plan;
    plan.tile_rows = small ? 64 : 128;
    plan.tile_cols = small ? 128 : 256;
    plan.tiles_across = (shape.n - 1) / plan.tile_cols + 1;
    plan.slots = std::max(1, gpu.sms / kCluster);
    plan.rates = {gpu.kernels.grouped_load, gpu.kernels.grouped_store,
                  gpu.kernels.hbm_narrow * gpu.hbm_bandwidth};
    plan.start = to_seconds(gpu.kernels.grouped_start);
    for (std::size_t group = 0; group < shape.rows.size(); ++group)
        if (shape.rows[group] > 0) plan.runs.push_back(group_tiles(shape, group, plan, miss));
    return plan;
}

}  // namespace moehub
