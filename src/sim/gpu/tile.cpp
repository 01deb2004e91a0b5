/// One tile among `a` that run at once takes
///
///     max(flops / SM peak, a · flops / card rate, load bytes / SM load rate,
///         a · HBM bytes / HBM rate) + store bytes / SM store rate.
///
/// The first term is the tensor cores of its own SMs, the second the power the card allows all of
/// them together, the third the way from L2 into shared memory, the fourth the tile's share of HBM.
/// Tiles run in waves of as many as there are slots: the persistent kernels of CUTLASS and cuBLAS
/// give slot s the tiles s, s + slots, … A tile's share of HBM is that of the wave it is in.
///
/// What is repeated for long runs at the clock at which the card draws no more power than it may.
/// Power goes about with the square of the clock, and is by `other_power` less while tensor cores
/// rest:
///
///     clock = throttled clock / √(busy + (1 - busy) · other power).
#include "sim/gpu/tile.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

struct WavePart {
    double count = 0;
    const TileWork* work = nullptr;
};

/// A wave of different tiles shares its HBM bytes evenly and lasts as long as its longest tile.
double wave_seconds(const Gpu& gpu, const TileRates& rates, const std::vector<WavePart>& parts,
                    double clock) {
    double active = 0;
    double hbm = 0;
    for (const WavePart& part : parts) {
        active += part.count;
        hbm += part.count * part.work->hbm_bytes;
    }
    double longest = 0;
    for (const WavePart& part : parts) {
        TileWork work = *part.work;
        work.hbm_bytes = hbm / active;
        longest = std::max(longest, tile_seconds(gpu, rates, work, active, clock));
    }
    return longest;
}

}  // namespace

std::int64_t GemmPlan::tiles() const {
    return std::accumulate(runs.begin(), runs.end(), std::int64_t{0},
                           [](std::int64_t sum, const TileRun& run) { return sum + run.count; });
}

double fp8_work(const Gpu& gpu, double efficiency) {
    return gpu.fp8_flops > 0 ? gpu.bf16_flops / (efficiency * gpu.fp8_flops) : 1;
}

double l2_hit(const Gpu& gpu, double footprint) {
    const double size = gpu.kernels.l2_resident * static_cast<double>(gpu.l2_capacity);
    return std::clamp((1.1 * size - footprint) / (0.2 * size), 0.0, 1.0);
}

double tile_seconds(const Gpu& gpu, const TileRates& rates, const TileWork& work, double active,
                    double clock) {
    const double alone = work.flops / (work.sms * gpu.bf16_flops / gpu.sms);
    const double card = gpu.kernels.tensor_efficiency * gpu.bf16_flops * clock;
    return std::max({alone, active * work.flops / card, work.load_bytes / rates.load,
                     active * work.hbm_bytes / rates.hbm}) +
           work.store_bytes / rates.store;
}

double tiles_seconds(const Gpu& gpu, const GemmPlan& plan, double clock) {
    double total = 0;
    std::int64_t filled = 0;
    std::vector<WavePart> wave;
    for (const TileRun& run : plan.runs) {
        std::int64_t left = run.count;
        while (left > 0) {
            if (filled == 0 && left >= plan.slots) {
                const double whole =
                    tile_seconds(gpu, plan.rates, run.work, static_cast<double>(plan.slots), clock);
                total += static_cast<double>(left / plan.slots) * whole;
                left %= plan.slots;
                continue;
            }
            const std::int64_t take = std::min(left, plan.slots - filled);
            wave.push_back({static_cast<double>(take), &run.work});
            filled += take;
            left -= take;
            if (filled == plan.slots) {
                total += wave_seconds(gpu, plan.rates, wave, clock);
                filled = 0;
                wave.clear();
            }
        }
    }
    return total + (filled > 0 ? wave_seconds(gpu, plan.rates, wave, clock) : 0);
}

double lowered_share(const Gpu& gpu, double full) {
    return std::clamp(full / to_seconds(gpu.kernels.boost_time) - 1, 0.0, 1.0);
}

double repeated_clock(const Gpu& gpu, double seconds, double tensor) {
    const Kernels& k = gpu.kernels;
    const double power = tensor + (1 - tensor) * k.other_power;
    const double lowest = std::min(1.0, k.throttled_clock / std::sqrt(power));
    return 1 - lowered_share(gpu, seconds) * (1 - lowest);
}

Gpu at_clock(const Gpu& gpu, double share) {
    Gpu slow = gpu;
    Kernels& k = slow.kernels;
    for (double* rate :
         {&slow.clock,      &slow.bf16_flops, &slow.fp8_flops,     &k.gemm_load,      &k.gemm_store,
          &k.grouped_load,  &k.grouped_store, &k.stream_load,      &k.row_load,       &k.row_store,
          &k.copy_load,     &k.cast_load,     &k.softmax_load,     &k.plain_elements, &k.norm_load,
          &k.quantise_load, &k.fp8_load,      &k.fp8_grouped_load, &k.scatter_add,    &k.index_add})
        *rate *= share;
    return slow;
}

double plan_seconds(const Gpu& gpu, const GemmPlan& plan) {
    const double full = tiles_seconds(gpu, plan) + plan.finish;
    const double lowered = lowered_share(gpu, full);
    double seconds = full;
    if (lowered > 0) {
        const double slow = tiles_seconds(gpu, plan, gpu.kernels.throttled_clock) + plan.finish;
        seconds += (slow - full) * lowered;
    }
    return plan.start + seconds;
}

}  // namespace moehub
