/// Rows that thread blocks copy, and GEMMs beside such a copy.
#pragma once
#include "study/validate_kinds.hpp"

#include <cstdint>

namespace moehub {

/// A copy of rows gathered by index; fills, which only store, stand in the same row.
struct CopyCase {
    Measurement measurement;
    bool fill = false;
    int warps = 0;  ///< of a block
    int blocks = 0;
    std::int64_t rows = 0;
    double width = 0;  ///< bytes of a row
};
std::vector<CopyCase> parse_copy(const CsvRow& row);
Prediction predict_copy(const CopyCase& what, const PredictContext& context);

struct BesideCopyCase {
    Measurement measurement;
    std::int64_t rows = 0;
    std::int64_t k = 0;
    std::int64_t n = 0;
    int blocks = 0;  ///< that copy
};
std::vector<BesideCopyCase> parse_beside_copy(const CsvRow& row);
Prediction predict_beside_copy(const BesideCopyCase& what, const PredictContext& context);

}  // namespace moehub
