/// Single-GPU operators: their shapes and predicted times.
#pragma once
#include <moehub/gpu.hpp>
#include <moehub/units.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace moehub {

/// One row of validation/h200/ops.csv without its measurement. Elements are bf16, keys int64.
struct Operator {
    std::string op;  ///< gemm, grouped_gemm, gather_rows, sum8_rows, argsort
    std::int64_t groups = 1;
    std::int64_t rows = 0;      ///< in total over groups
    std::int64_t max_rows = 0;  ///< of the fullest group
    std::int64_t k = 0;
    std::int64_t n = 0;
    double skew = 0;  ///< Zipf exponent of the rows per group
};

/// Time of the operator replayed inside a CUDA graph, as validation/measure_ops.py measures it;
/// nothing when the operator or its shape is not modelled. Depends on nothing but its arguments.
std::optional<Ps> predict(const Gpu& gpu, const Operator& op);

}  // namespace moehub
