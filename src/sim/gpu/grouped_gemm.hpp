/// The plan of one grouped GEMM, bf16 or FP8, as PyTorch executes it.
#pragma once
#include "sim/gpu/tile.hpp"

namespace moehub {

/// Group g multiplies [rows[g], k] × [k, n]; rows may be 0.
struct GroupedShape {
    std::vector<std::int64_t> rows;
    std::int64_t k = 0;
    std::int64_t n = 0;
    bool fp8 = false;   ///< weights and inputs of one byte; the result stays bf16
    double beside = 0;  ///< as of GemmShape
    double stored = 1;  ///< as of GemmShape
    bool cold = false;  ///< nothing of it is in L2: it is not replayed, other work went before
};

GemmPlan plan_grouped_gemm(const Gpu& gpu, const GroupedShape& shape);

/// Gradients of the weights, bf16: group g multiplies [k, rows[g]] × [rows[g], n], and writes zeros
/// where it has no rows.
GemmPlan plan_grouped_gradient(const Gpu& gpu, const GroupedShape& shape);

}  // namespace moehub
