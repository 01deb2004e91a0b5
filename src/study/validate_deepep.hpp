/// Measurements of DeepEP's kernels inside one node: dispatch and combine, two cases of a row.
#pragma once
#include "study/validate_kinds.hpp"

namespace moehub {

struct DeepEpCase {
    Measurement measurement;
    std::string system;
    std::string machine;
    bool combine = false;
    int gpus = 0;
    int nodes = 0;
    int sms = 0;  ///< given to normal kernels
    std::int64_t tokens_per_gpu = 0;
    int hidden = 0;
    int experts = 0;
    int top_k = 0;
};
std::vector<DeepEpCase> parse_deepep_ll(const CsvRow& row);
std::vector<DeepEpCase> parse_deepep_normal(const CsvRow& row);
Prediction predict_deepep(const DeepEpCase& what, const PredictContext& context);

}  // namespace moehub
