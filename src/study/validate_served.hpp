/// Parse and predict functions of published large-scale serving: tokens/s of a GPU, and times of a
/// layer's operators, of a model whose MoE layers run under a system between nodes.
///
/// How their columns are read:
///   - `batch_per_gpu`, `tokens_per_gpu`: requests, or in prefill tokens of whole prompts.
///   - `dispatcher`: "DeepEP normal" is deepep, any other DeepEP deepep-ll.
///   - experts and their copies lie as EPLB puts them for routing without favourites; tokens choose
///     so where the note says that balance was simulated, otherwise by what EPLB leaves.
///   - times of operators are of one layer.
#pragma once
#include "study/validate_kinds.hpp"

#include <moehub/served_model.hpp>

namespace moehub {

struct ServedRow {
    Measurement measurement;
    std::string model;
    std::string accel;
    int gpus = 0;
    bool prefill = false;
    std::int64_t batch_per_gpu = 0;
    std::int64_t context = 0;
    BatchOverlap overlap = BatchOverlap::none;
    bool balanced = false;
    int copies = 32;   ///< of experts; breakdowns do not say it, their sources do
    std::string part;  ///< an operator of a layer; empty: tokens/s
};
std::vector<ServedRow> parse_served(const CsvRow& row);
std::vector<ServedRow> parse_served_parts(const CsvRow& row);
Prediction predict_served(const ServedRow& row, const PredictContext& context);

}  // namespace moehub
