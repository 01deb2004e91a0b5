/// The plan of the experts' products as a serving engine's library runs them, from the constants
/// that were fitted to its fused MoE kernels.
#pragma once
#include "sim/gpu/tile.hpp"

#include <moehub/kernel_calls.hpp>

namespace moehub {

/// [rows of each expert, k] × [k, n], weights from HBM.
struct ExpertShape {
    std::vector<std::int64_t> rows;
    std::int64_t k = 0;
    std::int64_t n = 0;
    NumberFormat format = NumberFormat::bf16;
    double stored = 1;           ///< of the result's columns, as in GemmShape
    double beside = 0;           ///< bytes a row that its end reads further
    std::int64_t tile_rows = 0;  ///< of its tiles; 0: whatever is best
};

/// On a card with a library that has a MoE kernel for the format.
GemmPlan plan_expert_gemm(const Gpu& gpu, const ExpertShape& shape);

}  // namespace moehub
