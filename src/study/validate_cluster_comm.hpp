/// Published dispatch and combine on clusters: DeepEP's kernels of several versions, HybridEP.
#pragma once
#include "study/validate_kinds.hpp"

#include <moehub/routing.hpp>

namespace moehub {

/// A layer of which only rows move.
struct ClusterCommCase {
    Measurement measurement;
    std::string system;  ///< that is simulated: the version that was measured
    std::string machine;
    bool combine = false;
    int gpus = 0;
    int sms = 0;  ///< 0: the system's own
    std::int64_t tokens_per_gpu = 0;
    int hidden = 0;
    int experts = 0;
    int top_k = 0;
    int groups = 1;               ///< of experts: nodes,
    int top_groups = 1;           ///< of which a token may reach so many
    double dispatch_element = 0;  ///< bytes
    double combine_element = 0;   ///< bytes
};
std::vector<ClusterCommCase> parse_cluster_comm(const CsvRow& row);
Prediction predict_cluster_comm(const ClusterCommCase& what, const PredictContext& context);

/// Tokens choose as in DeepEP's tests: experts have random scores; the groups with the best expert
/// are kept, and of their experts the best.
Routing routing_by_scores(const ClusterCommCase& what, std::int64_t tokens);

}  // namespace moehub
