/// Parse and predict functions of published collectives inside a node, by element and size, whose
/// algorithm is the library's choice.
#pragma once
#include "study/validate_kinds.hpp"

#include <moehub/units.hpp>

namespace moehub {

/// Machine, op and dtype stay text: those that moehub does not know are skipped, not errors.
struct NcclCase {
    Measurement measurement;
    std::string machine;
    std::string op;  ///< all_reduce_one_shot: TensorRT-LLM's all-reduce
    std::string dtype;
    int gpus = 0;
    Bytes bytes = 0;
};
std::vector<NcclCase> parse_nccl(const CsvRow& row);
Prediction predict_nccl(const NcclCase& what, const PredictContext& context);

}  // namespace moehub
