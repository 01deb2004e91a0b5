/// A GEMM is cut into tiles of R rows and C columns, and k into s parts. A tile is computed by one
/// SM, on Blackwell also by a pair of them. Slots = SMs / SMs of a tile; tiles run in waves of as
/// many as there are slots. A tile of depth d = k / s among `a` that run at once takes
///
///     t(a) = max(max(2·R·C·d / SM rate, loaded bytes / load rate, chain · d)
///                + absent rows · absent_row · d,   a · 2·R·C·d / card rate),
///
/// where the card rate is the share of its peak that power allows, and the chain is the least time
/// of one step over k, however small the tile. All waves together need W = Σ t(a). HBM needs
/// M = (weights + inputs + outputs) / rate meanwhile. Neither hides the other wholly: each wave is
/// slowed as HBM is busy,
///
///     T = (W³ + M³)^(1/3) + store of what nothing hides + finish of a split k,
///
/// which is max(W, M) where one dominates, and 1.26 of it where both are equal. As the cube root is
/// homogeneous, this is the same as each tile taking t(a) · (1 + (M/W)³)^(1/3): tiles can be run
/// one by one. On Hopper a tile is stored before the next one of its slot begins; on Blackwell the
/// accumulators lie in tensor memory twice, and a store runs beside the next tile's work.
///
/// The library's choice is the tile and split with the smallest T, over lists below. Before it,
/// activations are quantised: `quantise` elements per cycle and SM, or as fast as HBM allows.
///
/// More rows, columns or depth never lower T: for one tile and split, the number of waves, the
/// waves' times and M only grow, and no tile becomes available by growth alone that was not matched
/// by one at least as fast before. The exception is `absent_row` > 0, measured on Hopper: a last
/// row tile of 65 rows is slower than one of 128 (NOTES.md).
#include "base/portable_math.hpp"
#include "sim/kernels/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace moehub {
namespace {

/// DeepGEMM on Hopper: 128 rows above 64 rows, few rows with weights and inputs swapped.
constexpr GemmTile kHopperFew[] = {{16, 64},  {32, 64},  {16, 128}, {32, 128}, {64, 16},
                                   {64, 32},  {64, 48},  {64, 64},  {64, 80},  {64, 96},
                                   {64, 112}, {64, 128}, {64, 160}};
constexpr GemmTile kHopperMany[] = {{128, 16}, {128, 32},  {128, 48},  {128, 64}, {128, 80},
                                    {128, 96}, {128, 112}, {128, 128}, {128, 160}};
constexpr std::int64_t kFewRows = 64;

/// Blackwell: 128 rows or columns a tensor core, 256 a pair of SMs.
constexpr GemmTile kBlackwell[] = {
    {16, 64},      {16, 128},    {32, 64},      {32, 128},     {64, 64},      {64, 128},
    {128, 64},     {128, 96},    {128, 128},    {128, 160},    {128, 192},    {128, 224},
    {128, 256},    {96, 128},    {160, 128},    {192, 128},    {224, 128},    {256, 128},
    {256, 64, 2},  {256, 96, 2}, {256, 128, 2}, {256, 160, 2}, {256, 192, 2}, {256, 224, 2},
    {256, 256, 2}, {64, 256, 2}, {96, 256, 2},  {128, 256, 2}, {160, 256, 2}, {192, 256, 2},
    {224, 256, 2}};

/// nvfp4: scales are laid out for 128 rows at a time, so no small tiles.
constexpr GemmTile kBlackwellFp4[] = {{128, 64},    {128, 128},    {128, 192},    {128, 256},
                                      {256, 64, 2}, {256, 128, 2}, {256, 192, 2}, {256, 256, 2}};

constexpr double kLeastDepth = 128;  ///< least of k in one part of a split: a step of the pipeline

/// Absent rows slow a tile fully once this share of the SMs has such a tile: they contend. Fitted
/// once (0.303), then left.
constexpr double kContending = 0.3;

/// Bytes to quantise an element: bf16 read (fp8: twice, first for the maximum), the rest written.
double quantise_bytes(NumberFormat format) {
    return (format == NumberFormat::fp8 ? 2 : 1) * 2 + bytes_of(format);
}

std::span<const GemmTile> tiles_of(TileFamily family, const GemmCall& call) {
    if (family == TileFamily::blackwell) {
        if (call.format == NumberFormat::nvfp4) return kBlackwellFp4;
        return kBlackwell;
    }
    if (call.format != NumberFormat::fp8_block) return kHopperTiles;
    if (call.m <= kFewRows) return kHopperFew;
    return kHopperMany;
}

/// cuBLAS splits k; DeepGEMM and the nvfp4 kernels do not.
bool can_split(NumberFormat format) {
    return format == NumberFormat::bf16 || format == NumberFormat::fp8;
}

/// What is the same for all tiles of a call.
struct Rates {
    double sm;      ///< FLOP/s of one SM's tensor cores
    double card;    ///< FLOP/s of all together
    double hbm;     ///< bytes/s
    double load;    ///< bytes/s into one SM
    double store;   ///< bytes/s out of one SM
    double chain;   ///< s per step of k
    double absent;  ///< s per step of k and absent row
    bool beside;    ///< a tile is stored while the next one is computed
    bool hidden;    ///< stores cost nothing: cuBLAS in bf16 on Blackwell; scales are applied at the
                    ///< end
};

Rates rates_of(const Gpu& gpu, const KernelLibrary& library, const GemmCall& call) {
    const GemmKernel& k = library.gemm;
    const GemmFormat& of = gemm_of(library, call.format);
    const double peak = flops_of(gpu, call.format);
    const bool blackwell = k.tiles == TileFamily::blackwell;
    const bool contends = !blackwell && call.format == NumberFormat::fp8_block && call.m > kFewRows;
    return {peak / gpu.sms,
            of.tensor * peak,
            k.hbm * gpu.hbm_bandwidth,
            k.load * gpu.clock,
            k.store * gpu.clock,
            of.chain / gpu.clock,
            contends ? k.absent_row / gpu.clock : 0,
            blackwell,
            blackwell && call.format == NumberFormat::bf16};
}

double overlapped(double tiles, double memory) {
    const double more = std::max(tiles, memory);
    const double less = std::min(tiles, memory) / more;
    return more * portable_exp(portable_log(1 + less * less * less) / 3);
}

/// One way to cut the call, in seconds.
struct Cut {
    double working = 0;  ///< all waves, were HBM free
    double storing = 0;  ///< output that no other tile's work hides
    double finish = 0;   ///< adding the parts of a split k
};

Cut cut(const Gpu& gpu, const GemmCall& call, const Rates& rates, const GemmTile& tile, int split,
        Ps split_finish) {
    const auto m = static_cast<double>(call.m);
    const auto n = static_cast<double>(call.n);
    const double in = bytes_of(call.format);
    const double down = std::ceil(m / tile.rows);
    const double tiles = down * std::ceil(n / tile.cols) * split;
    const int slots = gpu.sms / tile.sms;
    const double area = static_cast<double>(tile.rows) * tile.cols;
    const double edge =
        (std::min<double>(m, tile.rows) + std::min<double>(n, tile.cols)) / tile.sms;
    const double depth = static_cast<double>(call.k) / split;
    const double flops = 2 * area * depth;
    double alike = std::max({flops / (tile.sms * rates.sm), in * depth * edge / rates.load,
                             rates.chain * depth});  // whatever the others do
    if (rates.absent > 0) {
        const double lacking = std::min<double>(tiles, slots) / down;
        alike += rates.absent * depth * (down * tile.rows - m) *
                 std::min(1.0, lacking / (kContending * gpu.sms));
    }
    const double full = std::floor(tiles / slots);
    const double rest = tiles - full * slots;
    const double store =
        rates.hidden ? 0 : (split > 1 ? kFp32 : kBf16) * area / tile.sms / rates.store;
    double wave = std::max(alike, slots * flops / rates.card);
    if (rates.beside) wave = std::max(wave, store);
    const double last = rest > 0 ? std::max(alike, rest * flops / rates.card) : 0;
    return {full * wave + last, rates.beside ? store : (full + (rest > 0 ? 1 : 0)) * store,
            split > 1 ? to_seconds(split_finish) + split * m * n * kFp32 / rates.hbm : 0};
}

bool can_split(const Gpu& gpu, const GemmCall& call, const GemmTile& tile, int split) {
    if (split == 1) return true;
    const double tiles = std::ceil(static_cast<double>(call.m) / tile.rows) *
                         std::ceil(static_cast<double>(call.n) / tile.cols) * split;
    return can_split(call.format) && static_cast<double>(call.k) >= kLeastDepth * split &&
           tiles <= 2.0 * (gpu.sms / tile.sms);
}

/// The library's choice: the fastest by this equation.
Cut best_cut(const Gpu& gpu, const KernelLibrary& library, const GemmCall& call, const Rates& rates,
             double memory) {
    Cut best;
    double least = -1;
    for (const GemmTile& tile : tiles_of(library.gemm.tiles, call)) {
        if (tile.sms > gpu.sms) continue;
        for (const int split : kSplits) {
            if (!can_split(gpu, call, tile, split)) break;
            const Cut one = cut(gpu, call, rates, tile, split, library.gemm.split_finish);
            const double after = one.storing + one.finish;
            if (least >= 0 && std::max(one.working, memory) + after >= least) continue;
            const double seconds = overlapped(one.working, memory) + after;
            if (least >= 0 && seconds >= least) continue;
            least = seconds;
            best = one;
        }
    }
    return best;
}

}  // namespace

const GemmFormat& gemm_of(const KernelLibrary& library, NumberFormat format) {
    static const GemmFormat none;  // weights alone in 4 bits: nothing was measured
    const GemmFormat* const formats[] = {&library.gemm_bf16, &library.gemm_fp8,
                                         &library.gemm_fp8_block, &library.gemm_nvfp4, &none};
    return *formats[static_cast<std::size_t>(format)];
}

KernelCost linear(const Gpu& gpu, const KernelLibrary& library, const GemmCall& call) {
    const auto m = static_cast<double>(call.m);
    const auto n = static_cast<double>(call.n);
    const auto k = static_cast<double>(call.k);
    const double in = bytes_of(call.format);
    const GemmFormat& of = gemm_of(library, call.format);
    const Rates rates = rates_of(gpu, library, call);

    KernelCost cost;
    cost.peak = flops_of(gpu, call.format);
    cost.flops = 2 * m * n * k;
    cost.bytes = in * k * n + m * (in * k + kBf16 * n);
    cost.memory = cost.bytes / rates.hbm;
    const Cut best = best_cut(gpu, library, call, rates, cost.memory);
    cost.start = to_seconds(of.start);
    cost.tensor = best.working;
    cost.other = best.storing + best.finish;
    if (call.format != NumberFormat::bf16)
        cost.other += m * k *
                      std::max(1 / (of.quantise * gpu.sms * gpu.clock),
                               quantise_bytes(call.format) / rates.hbm);
    cost.seconds = cost.start + cost.other + overlapped(cost.tensor, cost.memory);
    return cost;
}

}  // namespace moehub
