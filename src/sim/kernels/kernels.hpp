/// Kernels of serving engines: what each costs, in a file of its name, and what they share.
#pragma once
#include "sim/gpu/tile.hpp"

#include <moehub/gpu.hpp>
#include <moehub/predict.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace moehub {

inline constexpr int kMostExperts = 1024;
inline constexpr int kMostChoices = 64;

/// How many rows each expert of the measured rank gets, by the routing of the published
/// measurements: tokens of an expert-parallel group choose among all its experts; this rank holds
/// experts / ep.
struct RowDraw {
    std::int64_t tokens = 1;  ///< tokens of the whole group
    int top_k = 1;            ///< choices of a token, at most kMostChoices
    int experts = 1;          ///< experts of the whole group, at most kMostExperts
    int ep = 1;
    double alpha = 0;  ///< 0: balanced; otherwise the exponent of the power law
    /// DeepSeek's group-limited choice: a token may only choose within `kept_groups` of `groups`
    /// equal groups of experts (1: no limit; at most 64).
    int groups = 1;
    int kept_groups = 1;
};

/// The heights of the row tiles that kernels cut an expert's rows into.
inline constexpr std::array<int, 6> kTileRows = {8, 16, 32, 64, 128, 256};

/// All that the cost of grouped products needs to know of the rows of a rank's experts. Means over
/// draws where the routing is random, so not whole numbers.
struct ExpertRows {
    double rows = 0;                               ///< rows: (token, expert) pairs on this rank
    double experts = 0;                            ///< experts with at least one row
    double fullest = 0;                            ///< rows of the fullest expert
    std::array<double, kTileRows.size()> tiles{};  ///< Σ ⌈rows / tile rows⌉, per tile height
};

/// Rows as the published measurements drew them.
ExpertRows expert_rows(const RowDraw& draw);

/// Rows given expert by expert, for a routing of one's own.
ExpertRows expert_rows(const std::int32_t* rows, int experts);

// Widths of DeepSeek's latent attention.
inline constexpr std::int64_t kMlaRank = 512;  ///< width of keys' and values' latent
inline constexpr std::int64_t kMlaRope = 64;   ///< width of a key's part with the position
inline constexpr std::int64_t kMlaKey = kMlaRank + kMlaRope;  ///< width of a cached key
inline constexpr std::int64_t kMlaNope = 128;  ///< width of a value, and of a key's other part

/// The format in which the call multiplies.
NumberFormat format_of(const KernelCall& call);

/// All formats that the call needs: that in which it multiplies, and its cache's.
std::array<NumberFormat, 2> formats_of(const KernelCall& call);

double bytes_of(NumberFormat format);         ///< bytes of a number, nvfp4's scales included
double weight_bytes_of(NumberFormat format);  ///< bytes of a weight, nvfp4's scales included
double flops_of(const Gpu& gpu, NumberFormat format);  ///< dense FLOP/s of the whole card

/// A library by name. Throws InputError, naming those there are.
const KernelLibrary& library_of(const Gpu& gpu, const std::string& name);

/// A tile of a GEMM, and how many SMs compute it together.
struct GemmTile {
    int rows = 0;
    int cols = 0;
    int sms = 1;
};

/// cuBLAS on Hopper (nvjet_sm90): the tiles seen in profiles of an H200, the last in serving alone.
inline constexpr GemmTile kHopperTiles[] = {
    {16, 64},   {32, 64},   {64, 64},   {96, 64},   {128, 64},  {192, 64}, {16, 128},
    {32, 128},  {64, 96},   {64, 128},  {128, 96},  {128, 128}, {64, 192}, {64, 256},
    {192, 128}, {128, 192}, {128, 256}, {192, 192}, {128, 320}, {256, 128}};

inline constexpr int kSplits[] = {1, 2, 3, 4, 6, 8};  ///< parts that libraries cut a GEMM's k into

/// The constants of the format.
const GemmFormat& gemm_of(const KernelLibrary& library, NumberFormat format);

/// A linear layer, activations quantised before it where its format asks for that.
KernelCost linear(const Gpu& gpu, const KernelLibrary& library, const GemmCall& call);

/// Attention over a paged cache of whole prompts.
KernelCost prefill_attention(const Gpu& gpu, const PrefillKernel& kernel, const PrefillCall& call);

/// Attention over a paged cache of one new token per sequence.
KernelCost decode_attention(const Gpu& gpu, const DecodeKernel& kernel, const DecodeCall& call);

/// Latent attention of whole prompts.
KernelCost mla_prefill(const Gpu& gpu, const MlaPrefillKernel& kernel, const MlaPrefillCall& call);

/// Latent attention of one new token per sequence.
KernelCost mla_decode(const Gpu& gpu, const MlaDecodeKernel& kernel, const MlaDecodeCall& call);

inline constexpr double kMoeStepBytes = 128;  ///< bytes of the inner dimension, loaded at a time

/// The fused MoE kernel for the format.
const MoeKernel& moe_of(const KernelLibrary& library, NumberFormat format);

/// The rows that the published measurements' routing leaves on the card.
ExpertRows rows_of(const MoeCall& call);

/// The experts of one card, from permutation to weighted sum, as fused kernels run them.
KernelCost fused_moe(const Gpu& gpu, const MoeKernel& kernel, const MoeCall& call,
                     const ExpertRows& rows);

}  // namespace moehub
