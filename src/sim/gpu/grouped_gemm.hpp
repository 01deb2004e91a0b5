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
    double stored = 1;  ///< as of GemmShape
};

GemmPlan plan_grouped_gemm(const Gpu& gpu, const GroupedShape& shape);

}  // namespace moehub
