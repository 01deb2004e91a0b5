/// The plan of one GEMM, bf16 or FP8, as the vendor library executes it.
#pragma once
#include "sim/gpu/tile.hpp"

namespace moehub {

/// [rows, k] × [k, n], all positive.
struct GemmShape {
    std::int64_t rows = 0;
    std::int64_t k = 0;
    std::int64_t n = 0;
    bool cold = false;    ///< nothing of it is in L2: it is not replayed, other work went before
    double send_row = 0;  ///< seconds to send a row of the result away, from when it is done
    bool fp8 = false;     ///< weights and inputs of one byte; the result stays bf16
    double beside = 0;    ///< bytes a row that its end reads further
    std::int64_t tile_rows = 0;  ///< of its tiles; 0: whatever is best
    double stored = 1;  ///< of the result's columns: 1/2 where gate and up become one at the end
};

/// The fastest of the library's tile shapes and split-K factors by this model.
GemmPlan plan_gemm(const Gpu& gpu, const GemmShape& shape);

/// With the tile and the split of another plan: a kernel chosen before the rows are known.
GemmPlan plan_gemm_like(const Gpu& gpu, const GemmShape& shape, const GemmPlan& like);

}  // namespace moehub
