/// time = start + product(up) + product(down) + passes, with
///
///   start   = start + k·choice + local experts·expert + tokens·k·slot
///   product = max(waves · tile work, bytes / (hbm · HBM)) + waves·tile + steps·step
///     waves     = max(1, tiles / SMs),  tiles = Σ experts ⌈rows / tile rows⌉ · ⌈n / tile columns⌉
///     tile work = 2 · tile rows · tile columns · inner / (tensor · FLOP/s / SMs)
///     bytes     = experts with rows · weights + rows · (inputs + outputs)
///                 (HBM: at most stream · SMs · clock, where a kernel has that limit)
///     steps     = inner · bytes of an element / 128
///   passes  = bytes of rows that the kernels around the products read and write / (pass · HBM)
///
/// A tile has all its rows worked off, filled or not, so the rows of each expert decide. Libraries
/// take the tile height from the mean rows of an expert (a tuner sees even routing, a rule sees
/// tokens · k / experts), never from the rows that come: the best of the heights from the smallest
/// that holds the mean up to the highest. As the mean grows only low tiles leave the list, so
/// more rows on each expert never take less time. Weights come from HBM: caching them in L2
/// explained nothing.
#include "sim/kernels/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

struct MoeTile {
    std::size_t height = 0;  ///< index into kTileRows
    double columns = 128;
    double step_bytes = kMoeStepBytes;  ///< bytes of the inner dimension, loaded at a time
};

/// The heights a kernel may take and how kBf16 its tiles are.
struct TileList {
    std::array<MoeTile, kTileRows.size()> tiles{};
    std::size_t size = 0;
    void add(const MoeTile& tile) { tiles[size++] = tile; }
};

struct Product {
    double tensor = 0;
    double memory = 0;
    double latency = 0;
    double seconds() const { return std::max(tensor, memory) + latency; }
};

/// A call's extents as numbers, and the rows of the experts on the gpu.
struct MoeWork {
    double tokens = 0;  ///< tokens of the whole expert-parallel group: all of them reach the card
    double hidden = 0;
    double ffn = 0;  ///< width of an expert on this card
    double up = 0;   ///< columns of the first product
    double top_k = 0;
    double experts = 0;
    double local_experts = 0;
    NumberFormat format = NumberFormat::bf16;
    ExpertRows rows;
};

MoeWork work_of(const MoeCall& call, const ExpertRows& rows) {
    const auto d = [](std::int64_t value) { return static_cast<double>(value); };
    MoeWork work;
    work.tokens = d(call.tokens);
    work.hidden = d(call.hidden);
    work.ffn = d(call.expert_ffn / call.tp);
    work.up = (call.gated ? 2 : 1) * work.ffn;
    work.top_k = d(call.top_k);
    work.experts = d(call.experts);
    work.local_experts = d(call.experts / call.ep);
    work.format = call.format;
    work.rows = rows;
    return work;
}

/// SGLang's default blocks for bf16: 16 × 32 × 64 up to one token an expert, then 64 × 64 × 32.
TileList triton_bf16_tiles(const MoeWork& work) {
    constexpr std::size_t k16 = 1;
    constexpr std::size_t k64 = 3;
    TileList list;
    if (work.tokens <= work.local_experts) list.add({k16, 32, 128});
    list.add({k64, 64, 64});
    return list;
}

TileList tiles(const MoeWork& work, MoeStyle style) {
    if (style == MoeStyle::triton && work.format == NumberFormat::bf16)
        return triton_bf16_tiles(work);
    // trtllm-gen's rule divides by the experts it holds, though all tokens of the group are
    // counted.
    const double experts = style == MoeStyle::trtllm_gen ? work.local_experts : work.experts;
    const double mean = work.tokens * work.top_k / experts;
    const int highest = style == MoeStyle::triton            ? 64
                        : work.format == NumberFormat::nvfp4 ? 256
                                                             : 128;
    TileList list;
    for (std::size_t i = 0; i < kTileRows.size() && kTileRows[i] <= highest; ++i)
        if (kTileRows[i] >= mean || kTileRows[i] == highest) list.add({i});
    return list;
}

/// An untuned kernel may keep so few loads under way that its SMs, not HBM, set the pace.
double bandwidth(const Gpu& gpu, const MoeKernel& kernel) {
    const double hbm = kernel.hbm * gpu.hbm_bandwidth;
    return kernel.stream > 0 ? std::min(hbm, kernel.stream * gpu.sms * gpu.clock) : hbm;
}

Product product(const Gpu& gpu, const MoeWork& work, const MoeKernel& kernel, const MoeTile& tile,
                double n, double inner) {
    const double element = bytes_of(work.format);
    const double sm_flops = kernel.tensor * flops_of(gpu, work.format) / gpu.sms;
    const double waves =
        std::max(1.0, work.rows.tiles[tile.height] * std::ceil(n / tile.columns) / gpu.sms);
    const double bytes = work.rows.experts * n * inner * weight_bytes_of(work.format) +
                         work.rows.rows * (inner * element + n * kBf16);
    return {waves * 2 * kTileRows[tile.height] * tile.columns * inner / sm_flops,
            bytes / bandwidth(gpu, kernel),
            waves * to_seconds(kernel.tile) +
                inner * element / tile.step_bytes * to_seconds(kernel.step)};
}

Product best_product(const Gpu& gpu, const MoeWork& work, const MoeKernel& kernel,
                     const TileList& list, double n, double inner) {
    Product best = product(gpu, work, kernel, list.tiles[0], n, inner);
    for (std::size_t i = 1; i < list.size; ++i) {
        const Product other = product(gpu, work, kernel, list.tiles[i], n, inner);
        if (other.seconds() < best.seconds()) best = other;
    }
    return best;
}

/// Bytes that the kernels before, between and after the products read and write.
double pass_bytes(const MoeWork& work, MoeStyle style) {
    const double element = bytes_of(work.format);
    const double rows = work.rows.rows;
    const double output = work.tokens * work.hidden * kBf16;
    const bool quantised = element < kBf16;
    // Slots are all choices of all tokens, those that fall to other ranks among them.
    const double slots = work.tokens * work.top_k;
    if (style == MoeStyle::trtllm_gen) {
        const double input = quantised ? work.tokens * work.hidden * (kBf16 + element) : 0;
        // With block scales the activation is a kernel of its own, over all slots.
        const double activation = work.format == NumberFormat::fp8_block
                                      ? slots * (work.up * kBf16 + work.ffn * element)
                                      : 0;
        return input + activation + rows * work.hidden * kBf16 + output;
    }
    if (style == MoeStyle::triton) {
        const double quantising =
            quantised ? (work.tokens * work.hidden + slots * work.ffn) * (kBf16 + element) : 0;
        return quantising + slots * (work.up + work.ffn + work.hidden) * kBf16 + output;
    }
    return rows * work.hidden * (kBf16 + element) + rows * (work.up * kBf16 + work.ffn * element) +
           rows * work.hidden * kBf16 + output;
}

}  // namespace

const MoeKernel& moe_of(const KernelLibrary& library, NumberFormat format) {
    const MoeKernel* const kernels[] = {&library.moe_bf16, &library.moe_fp8, &library.moe_fp8_block,
                                        &library.moe_nvfp4, &library.moe_bf16};
    return *kernels[static_cast<std::size_t>(format)];
}

ExpertRows rows_of(const MoeCall& call) {
    const auto i = [](std::int64_t value) { return static_cast<int>(value); };
    return expert_rows({call.tokens, i(call.top_k), i(call.experts), i(call.ep), call.skew,
                        i(call.groups), i(call.kept_groups)});
}

KernelCost fused_moe(const Gpu& gpu, const MoeKernel& kernel, const MoeCall& call,
                     const ExpertRows& rows) {
    const MoeWork work = work_of(call, rows);
    const TileList list = tiles(work, kernel.style);
    const Product first = best_product(gpu, work, kernel, list, work.up, work.hidden);
    const Product second = best_product(gpu, work, kernel, list, work.hidden, work.ffn);
    const double passed = pass_bytes(work, kernel.style);

    KernelCost cost;
    cost.start = to_seconds(kernel.start) + work.top_k * to_seconds(kernel.choice) +
                 work.local_experts * to_seconds(kernel.expert) +
                 work.tokens * work.top_k * to_seconds(kernel.slot);
    cost.tensor = first.tensor + second.tensor;
    cost.memory = first.memory + second.memory;
    cost.other = first.latency + second.latency + passed / (kernel.pass * gpu.hbm_bandwidth);
    cost.seconds = cost.start + std::max(first.tensor, first.memory) +
                   std::max(second.tensor, second.memory) + cost.other;
    cost.peak = flops_of(gpu, work.format);
    cost.flops = 2 * work.rows.rows * work.hidden * (work.up + work.ffn);
    cost.bytes = cost.memory * bandwidth(gpu, kernel) + passed;
    return cost;
}

}  // namespace moehub
