/// Tiles: pieces of a GEMM that one SM, or a pair of SMs, computes; and how long a list of them
/// takes. The simulator runs the same tiles one by one on SM slots.
#pragma once
#include <moehub/gpu.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

namespace moehub {

// Bytes of a number.
inline constexpr double kFp8 = 1;
inline constexpr double kBf16 = 2;
inline constexpr double kFp32 = 4;

/// Pieces that a whole is cut into; the last may be smaller.
constexpr std::int64_t pieces_of(std::int64_t whole, std::int64_t piece) {
    return (whole - 1) / piece + 1;
}

inline Ps to_ps(double seconds) {
    return std::llround(seconds * 1e12);
}

/// What one tile asks of the card.
struct TileWork {
    double flops = 0;        ///< FLOPs of bf16, padding included: the tensor cores run on zeros too
    double load_bytes = 0;   ///< bytes into the shared memory of each SM of the tile
    double hbm_bytes = 0;    ///< the tile's share of what the operator moves to and from HBM
    double store_bytes = 0;  ///< bytes of finished output from each SM
    int sms = 1;             ///< SMs that work on the tile together
};

/// What a kernel reaches; bytes/s.
struct TileRates {
    double load = 0;   ///< bytes/s into one SM
    double store = 0;  ///< bytes/s out of one SM
    double hbm = 0;    ///< bytes/s of the whole card
};

/// Equal tiles that are pulled one after the other; `group` is the expert they belong to.
struct TileRun {
    std::int64_t count = 0;
    std::int64_t group = 0;
    TileWork work;
};

/// A GEMM cut into tiles.
struct GemmPlan {
    std::int64_t tile_rows = 0;
    std::int64_t tile_cols = 0;
    std::int64_t tiles_across = 0;  ///< tiles beside one another, over all columns
    std::int64_t split = 1;         ///< parts of the inner dimension, added by a second kernel
    std::int64_t slots = 0;         ///< tiles that run at once
    TileRates rates;
    std::vector<TileRun> runs;  ///< tiles in the order in which slots pull them
    double weight_bytes = 0;    ///< bytes a tile needs of the matrix all rows share, if not in L2
    double row_bytes = 0;       ///< a tile's share of what its rows read and write
    double start = 0;           ///< seconds from launch to the first tile
    double finish = 0;          ///< seconds after the last tile

    std::int64_t tiles() const;
};

/// Seconds of one tile while `active` tiles run; `clock` is the share of the full clock.
double tile_seconds(const Gpu& gpu, const TileRates& rates, const TileWork& work, double active,
                    double clock = 1);

/// Seconds of all tiles of the plan without start and finish.
double tiles_seconds(const Gpu& gpu, const GemmPlan& plan, double clock = 1);

/// Share of the full clock at which a card runs what takes so many seconds, repeated without a
/// pause, while its tensor cores are busy for `tensor` of the time.
double repeated_clock(const Gpu& gpu, double seconds, double tensor);

/// The card at a share of its clock: SMs and L2 are slower, HBM is not.
Gpu at_clock(const Gpu& gpu, double share);

/// Seconds of the plan, replayed back to back; long ones run at the lowered clock.
double plan_seconds(const Gpu& gpu, const GemmPlan& plan);

/// How far the power limit has lowered the clock, 0 (not yet) to 1, for an operator replayed back
/// to back that takes `full` seconds at the full clock.
double lowered_share(const Gpu& gpu, double full);

/// Operations of bf16 that take as long as one of FP8, of which kernels reach `efficiency` beside
/// what they reach of bf16; 1 on a card without FP8 units.
double fp8_work(const Gpu& gpu, double efficiency);

/// Share of an operator's bytes that are still in L2 when it is replayed.
double l2_hit(const Gpu& gpu, double footprint);

/// A card of which kernels have a part: so many of its SMs, and as much of its tensor cores; its
/// memory is whole.
inline Gpu with_sms(Gpu gpu, int sms) {
    gpu.bf16_flops *= static_cast<double>(sms) / gpu.sms;
    gpu.fp8_flops *= static_cast<double>(sms) / gpu.sms;
    gpu.nvfp4_flops *= static_cast<double>(sms) / gpu.sms;
    gpu.sms = sms;
    return gpu;
}

}  // namespace moehub
