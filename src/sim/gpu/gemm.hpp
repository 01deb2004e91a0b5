/// Plans of GEMMs as libraries execute them: single, grouped, and those of experts.
#pragma once
#include "sim/gpu/tile.hpp"

#include <moehub/kernel_calls.hpp>

#include <cstdint>
#include <vector>

namespace moehub {

/// Nothing of a GEMM is in L2: it is not replayed, other work went through L2 before.
inline constexpr bool kCold = true;

/// One GEMM, bf16 or FP8, as the vendor library executes it: [rows, k] × [k, n], all positive.
struct GemmShape {
    std::int64_t rows = 0;
    std::int64_t k = 0;
    std::int64_t n = 0;
    bool cold = false;           ///< kCold, or its matrices may be in L2
    double send_row = 0;         ///< seconds to send a row of the result away, from when it is done
    bool fp8 = false;            ///< weights and inputs of one byte; the result stays bf16
    double beside = 0;           ///< bytes a row that its end reads further
    std::int64_t tile_rows = 0;  ///< rows of the GEMM's tiles; 0: whatever is best
    double stored = 1;  ///< share of the result's columns: 1/2 where gate and up become one
};

/// The fastest of the library's tile shapes and split-K factors by this model.
GemmPlan plan_gemm(const Gpu& gpu, const GemmShape& shape);

/// The plan with the tile and split of another: a kernel chosen before the rows are known.
GemmPlan plan_gemm_like(const Gpu& gpu, const GemmShape& shape, const GemmPlan& like);

/// A grouped GEMM, bf16 or FP8, as PyTorch executes it: group g multiplies [rows[g], k] × [k, n].
/// rows[g] may be 0.
struct GroupedShape {
    std::vector<std::int64_t> rows;
    std::int64_t k = 0;
    std::int64_t n = 0;
    bool fp8 = false;   ///< weights and inputs of one byte; the result stays bf16
    double beside = 0;  ///< bytes a row that the end of the GEMM reads further
    double stored = 1;  ///< share of the result's columns (GemmShape::stored)
    bool cold = false;  ///< kCold, or its matrices may be in L2
};

GemmPlan plan_grouped_gemm(const Gpu& gpu, const GroupedShape& shape);

/// Gradients of the weights, bf16: group g multiplies [k, rows[g]] × [rows[g], n], and writes zeros
/// where it has no rows.
GemmPlan plan_grouped_gradient(const Gpu& gpu, const GroupedShape& shape);

/// Rows per group of a grouped GEMM, rebuilt from what a measurement records of them.
struct GroupSpread {
    std::int64_t groups = 1;
    std::int64_t rows = 0;      ///< in total
    std::int64_t max_rows = 0;  ///< rows of the fullest group; moved into what is possible
    double skew = 0;            ///< Zipf exponent
};

/// The fullest group first, then by falling expectation; the sum is `rows`, none above max_rows.
std::vector<std::int64_t> rows_per_group(const GroupSpread& spread);

/// The experts' products as a serving engine's library runs them, from the constants that were
/// fitted to its fused MoE kernels: [rows of each expert, k] × [k, n], weights from HBM.
struct ExpertShape {
    std::vector<std::int64_t> rows;
    std::int64_t k = 0;
    std::int64_t n = 0;
    NumberFormat format = NumberFormat::bf16;
    double stored = 1;           ///< share of the result's columns (GemmShape::stored)
    double beside = 0;           ///< bytes a row that the end of the GEMM reads further
    std::int64_t tile_rows = 0;  ///< rows of the GEMM's tiles; 0: whatever is best
};

/// The plan on a card with a library that has a MoE kernel for the format.
GemmPlan plan_expert_gemm(const Gpu& gpu, const ExpertShape& shape);

}  // namespace moehub
