/// Parse and predict functions of the files that time the parts of a transformer layer on one GPU.
#pragma once
#include "study/validate_kinds.hpp"

#include <moehub/operators.hpp>

namespace moehub {

struct LayerRowCase {
    Measurement measurement;
    LayerOperator op;
    std::string dtype;
};
std::vector<LayerRowCase> parse_layer(const CsvRow& row);
Prediction predict_layer_case(const LayerRowCase& what, const PredictContext& context);

/// The model stays text: one that moehub does not know is skipped.
struct EagerCase {
    Measurement measurement;
    std::string model;  ///< as load_model_share reads it
    std::string phase;
    std::int64_t tokens = 0;
    std::int64_t rows = 0;
};
/// One case for every phase.
std::vector<EagerCase> parse_eager(const CsvRow& row);
Prediction predict_eager_case(const EagerCase& what, const PredictContext& context);

}  // namespace moehub
