/// Parse and predict functions of the files that time what training adds, and long attention, on
/// one GPU.
#pragma once
#include "study/validate_layers.hpp"

#include <moehub/operators.hpp>

namespace moehub {

struct TrainingCase {
    Measurement measurement;
    TrainingOperator op;
};
std::vector<TrainingCase> parse_training(const CsvRow& row);
Prediction predict_training_case(const TrainingCase& what, const PredictContext& context);

/// Two cases a row: forward, and forward with backward.
std::vector<LayerRowCase> parse_long_attention(const CsvRow& row);

}  // namespace moehub
