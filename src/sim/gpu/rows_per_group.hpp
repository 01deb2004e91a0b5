/// Rows per group of a grouped GEMM, rebuilt from what a measurement records of them.
#pragma once
#include <cstdint>
#include <vector>

namespace moehub {

struct GroupSpread {
    std::int64_t groups = 1;
    std::int64_t rows = 0;      ///< in total
    std::int64_t max_rows = 0;  ///< of the fullest group; moved into what rows and groups allow
    double skew = 0;            ///< Zipf exponent
};

/// The fullest group first, then by falling expectation; the sum is `rows`, none above max_rows.
std::vector<std::int64_t> rows_per_group(const GroupSpread& spread);

}  // namespace moehub
