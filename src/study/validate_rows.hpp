/// Parse and predict functions of the measurement files, one pair per kind.
#pragma once
#include "study/validate_kinds.hpp"

#include <moehub/model.hpp>
#include <moehub/operators.hpp>
#include <moehub/units.hpp>

namespace moehub {

struct OperatorCase {
    Measurement measurement;
    Operator op;
};
std::vector<OperatorCase> parse_operator(const CsvRow& row);
Prediction predict_operator(const OperatorCase& what, const PredictContext& context);

/// Op and algorithm stay text: those that moehub does not know are skipped, not errors.
struct CollectiveCase {
    Measurement measurement;
    std::string machine;
    std::string op;
    std::string algorithm;
    int gpus = 0;
    Bytes bytes = 0;
};
std::vector<CollectiveCase> parse_collective(const CsvRow& row);
Prediction predict_collective(const CollectiveCase& what, const PredictContext& context);

/// System, machine, routing and phase stay text: those that moehub does not know are skipped.
struct MoeCommCase {
    Measurement measurement;
    std::string system;
    std::string machine;
    std::string routing;  ///< as parse_routing reads it; "perfect" is balanced
    std::string phase;    ///< dispatch or combine
    int gpus = 0;
    std::int64_t tokens_per_gpu = 0;
    int hidden = 0;
    int experts = 0;
    int top_k = 0;
    double dispatch_element = 0;  ///< bytes
    double combine_element = 0;   ///< bytes
};
/// A layer of which only rows move: what its communication depends on, experts of any width.
Model model_of_rows(int hidden, int experts, int top_k);
std::vector<MoeCommCase> parse_moe_comm(const CsvRow& row);
Prediction predict_moe_comm(const MoeCommCase& what, const PredictContext& context);

}  // namespace moehub
