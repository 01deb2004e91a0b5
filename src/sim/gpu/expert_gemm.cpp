/// As fused_moe.cpp has a product, tile by tile: a tile of h rows and c columns takes an SM
///
///     2 · h · c · k / (tensor · FLOP/s / SMs) + tile,
///
/// with its share of the operator's bytes at hbm · HBM beside it, and the product begins after a
/// launch, `expert` for each expert's set-up and `step` for every 128 bytes of the inner dimension.
/// The tile's height is the best of those from the smallest that holds an expert's mean rows.
#include "sim/gpu/gemm.hpp"
#include "sim/kernels/kernels.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

constexpr std::int64_t kExpertColumns = 128;

/// What is the same for all tiles of a product.
struct ExpertProduct {
    const Gpu& gpu;
    const ExpertShape& shape;
    const MoeKernel& kernel;
    double weight;   ///< bytes of one
    double element;  ///< bytes of an input
    double out;      ///< bytes that an element of the result leaves behind
};

TileRun tiles_of(const ExpertProduct& p, std::size_t expert, std::int64_t height) {
    const auto k = static_cast<double>(p.shape.k);
    const auto n = static_cast<double>(p.shape.n);
    const auto rows = static_cast<double>(p.shape.rows[expert]);
    const std::int64_t tiles =
        pieces_of(p.shape.rows[expert], height) * pieces_of(p.shape.n, kExpertColumns);
    const double products = 2 * static_cast<double>(height * kExpertColumns) * k;
    const double rate = p.kernel.tensor * flops_of(p.gpu, p.shape.format);
    // Tiles are counted in what takes as long in bf16 at the rate that plans reach.
    const double reached = p.gpu.kernels.tensor_efficiency * p.gpu.bf16_flops;
    const double bytes = p.weight * k * n + rows * (p.element * k + p.out * n + p.shape.beside);
    return {tiles,
            static_cast<std::int64_t>(expert),
            {.flops = products / rate * reached,
             .load_bytes = 0,
             .hbm_bytes = bytes / static_cast<double>(tiles),
             .store_bytes = to_seconds(p.kernel.tile),
             .sms = 1}};
}

GemmPlan cut_rows(const ExpertProduct& p, std::int64_t height) {
    const auto k = static_cast<double>(p.shape.k);
    const auto n = static_cast<double>(p.shape.n);
    GemmPlan plan;
    plan.tile_rows = height;
    plan.tile_cols = kExpertColumns;
    plan.tiles_across = pieces_of(p.shape.n, kExpertColumns);
    plan.slots = p.gpu.sms;
    double hbm = p.kernel.hbm * p.gpu.hbm_bandwidth;
    if (p.kernel.stream > 0) hbm = std::min(hbm, p.kernel.stream * p.gpu.sms * p.gpu.clock);
    plan.rates = {1, 1, hbm};  // loads are in `tensor`; a tile's end is given in seconds
    std::int64_t rows = 0;
    for (std::size_t expert = 0; expert < p.shape.rows.size(); ++expert) {
        if (p.shape.rows[expert] == 0) continue;
        plan.runs.push_back(tiles_of(p, expert, height));
        rows += p.shape.rows[expert];
    }
    plan.weight_bytes = p.weight * k * n / static_cast<double>(plan.tiles_across);
    const double row = p.element * k + p.out * n + p.shape.beside;
    plan.row_bytes = static_cast<double>(rows) * row / static_cast<double>(plan.tiles());
    plan.start = to_seconds(p.gpu.kernels.gemm_start) +
                 static_cast<double>(p.shape.rows.size()) * to_seconds(p.kernel.expert) +
                 p.element * k / kMoeStepBytes * to_seconds(p.kernel.step);
    return plan;
}

}  // namespace

GemmPlan plan_expert_gemm(const Gpu& gpu, const ExpertShape& shape) {
    const MoeKernel& kernel = moe_of(gpu.libraries.at(gpu.library), shape.format);
    const ExpertProduct product{gpu,
                                shape,
                                kernel,
                                weight_bytes_of(shape.format),
                                bytes_of(shape.format),
                                2 * shape.stored};
    if (shape.tile_rows > 0) return cut_rows(product, shape.tile_rows);
    const std::int64_t rows =
        std::accumulate(shape.rows.begin(), shape.rows.end(), std::int64_t{0});
    const std::int64_t mean = rows / static_cast<std::int64_t>(shape.rows.size());
    const int highest = shape.format == NumberFormat::nvfp4 ? 256 : 128;
    GemmPlan best;
    double least = -1;
    for (const int height : kTileRows) {
        if (height > highest || (height < mean && height < highest)) continue;
        GemmPlan plan = cut_rows(product, height);
        const double seconds = tiles_seconds(gpu, plan);
        if (least >= 0 && seconds >= least) continue;
        least = seconds;
        best = std::move(plan);
    }
    return best;
}

}  // namespace moehub
