/// Parse and predict functions of published training runs: <moehub/training_runs.hpp>.
#pragma once
#include "study/validate_kinds.hpp"

#include <moehub/training_runs.hpp>

namespace moehub {

struct TrainingRunCase {
    Measurement measurement;
    PublishedRun run;
};
/// One case a row: tokens/s, TFLOP/s, MFU or seconds, the first that is given.
std::vector<TrainingRunCase> parse_training_case(const CsvRow& row);
Prediction predict_training_run(const TrainingRunCase& what, const PredictContext& context);

}  // namespace moehub
