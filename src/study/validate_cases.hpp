/// What the rows of each kind of measurement file are, ready to be predicted. Names in rows stay
/// text: a row with one that moehub does not know is skipped, not an error.
#pragma once
#include "study/validate_kinds.hpp"

#include <moehub/kernel_calls.hpp>
#include <moehub/predict.hpp>
#include <moehub/routing.hpp>

namespace moehub {

// Of one card: operators and layers of PyTorch, what training adds, copies.
Cases operator_cases(const CsvRow& row);
Cases layer_cases(const CsvRow& row);
Cases eager_cases(const CsvRow& row);           ///< one for every phase
Cases training_op_cases(const CsvRow& row);     ///< what training adds
Cases long_attention_cases(const CsvRow& row);  ///< forward, and forward with backward
Cases whole_layer_cases(const CsvRow& row);     ///< eager, as a CUDA graph, with its backward pass
Cases copy_cases(const CsvRow& row);            ///< rows gathered by index; fills, which only store
Cases beside_copy_cases(const CsvRow& row);

struct LayerRowCase {
    Measurement measurement;
    LayerOperator op;
    std::string dtype;
};
LayerRowCase parse_layer(const CsvRow& row);

// Collectives: by algorithm, as sources name them between nodes and in racks, by element and size.
Cases collective_cases(const CsvRow& row);
Cases cluster_collective_cases(const CsvRow& row);
Cases nccl_cases(const CsvRow& row);

// Dispatch and combine: inside a node, of DeepEP's kernels, on clusters.
Cases moe_comm_cases(const CsvRow& row);
Cases deepep_ll_cases(const CsvRow& row);
Cases deepep_normal_cases(const CsvRow& row);
Cases cluster_comm_cases(const CsvRow& row);

/// A layer of which only rows move.
struct MovedRows {
    std::string system;  ///< that is simulated: the version that was measured
    std::string machine;
    std::string routing;  ///< as parse_routing reads it; empty: by scores
    bool combine = false;
    int gpus = 0;
    int sms = 0;  ///< 0: the system's own
    std::int64_t tokens_per_gpu = 0;
    int hidden = 0;
    int experts = 0;
    int top_k = 0;
    int groups = 1;               ///< of experts: nodes,
    int top_groups = 1;           ///< of which a token may reach so many
    double dispatch_element = 0;  ///< bytes; 0: the system's own
    double combine_element = 0;   ///< likewise
};
/// Tokens choose as in DeepEP's tests: experts have random scores; the groups with the best expert
/// are kept, and of their experts the best.
Routing routing_by_scores(const MovedRows& what, std::int64_t tokens);

// Kernels of serving engines, as published (validation/kernels): a row names its card.
struct KernelCase {
    Measurement measurement;
    std::string library;
    KernelCall call;
};
KernelCase parse_gemm(const CsvRow& row);
KernelCase parse_attention(const CsvRow& row);  ///< prefill, and decode: one token
KernelCase parse_mla(const CsvRow& row);        ///< likewise
KernelCase parse_moe(const CsvRow& row);
Prediction predict_kernel_case(const KernelCase& what, const PredictContext& context);

template <KernelCase (*parse)(const CsvRow&)>
Cases kernel_cases(const CsvRow& row) {
    const KernelCase what = parse(row);
    return {{row.line(), what.measurement,
             [what](const PredictContext& context) { return predict_kernel_case(what, context); }}};
}

// Published serving: of end-to-end measurements validate_serving.hpp says how columns are read,
// of large-scale deployments and times of a layer's operators validate_served.cpp.
Cases serving_cases(const CsvRow& row);
Cases served_cases(const CsvRow& row);
Cases served_part_cases(const CsvRow& row);

/// Published training runs: tokens/s, TFLOP/s, MFU or seconds, the first that is given.
Cases training_run_cases(const CsvRow& row);

}  // namespace moehub
