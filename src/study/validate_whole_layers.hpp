/// Parse and predict functions of the files that time a whole MoE layer of plain PyTorch.
#pragma once
#include "study/validate_kinds.hpp"

namespace moehub {

/// The model stays text: one that moehub does not know is skipped.
struct WholeLayerCase {
    Measurement measurement;
    std::string model;  ///< as load_model_share reads it
    std::int64_t tokens = 0;
};
/// One case for every way of running it: eager, as a CUDA graph, with its backward pass.
std::vector<WholeLayerCase> parse_whole_layer(const CsvRow& row);
Prediction predict_whole_layer(const WholeLayerCase& what, const PredictContext& context);

}  // namespace moehub
