/// Single-GPU operators: their shapes and predicted times.
#pragma once
#include <moehub/gpu.hpp>
#include <moehub/units.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace moehub {

/// One row of validation/h200/ops.csv without its measurement. Elements are bf16, keys int64.
struct Operator {
    std::string op;  ///< gemm, grouped_gemm, gather_rows, sum8_rows, argsort
    std::int64_t groups = 1;
    std::int64_t rows = 0;      ///< in total over groups
    std::int64_t max_rows = 0;  ///< of the fullest group
    std::int64_t k = 0;
    std::int64_t n = 0;
    double skew = 0;  ///< Zipf exponent of the rows per group
};

/// Time of the operator replayed inside a CUDA graph, as validation/measure_ops.py measures it;
/// nothing when the operator or its shape is not modelled. Depends on nothing but its arguments.
std::optional<Ps> predict(const Gpu& gpu, const Operator& op);

/// One row of validation/h200/layers.csv without its measurement: an operator of a transformer
/// layer, with those of the numbers below that it has.
struct LayerOperator {
    std::string op;  ///< attention_fwd_cudnn, …, grouped_gemm_fp8; attention_fwd_bwd_cudnn
    std::int64_t batch = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t seq = 0;
    std::int64_t head_dim = 0;
    std::int64_t groups = 1;  ///< experts
    std::int64_t rows = 0;    ///< in total over groups, spread evenly
    std::int64_t k = 0;
    std::int64_t n = 0;
};

/// Time of the operator replayed inside a CUDA graph on a slow host, attention backward of a call
/// from eager PyTorch: as layers.csv measures them. Nothing when it is not modelled.
std::optional<Ps> predict_layer(const Gpu& gpu, const LayerOperator& op);

/// One row of validation/h200/training_ops.csv without its measurement.
struct TrainingOperator {
    std::string op;  ///< adamw_fp32, add_bf16_to_fp32, cross_entropy_fp32_fwd_bwd
    std::int64_t elements = 0;
    std::int64_t rows = 0;  ///< tokens of a cross entropy; divides elements
};

/// Time of the operator as that file measures it: called from eager PyTorch on an idle card, the
/// accumulation replayed. Nothing when it is not modelled.
std::optional<Ps> predict_training(const Gpu& gpu, const TrainingOperator& op);

/// One phase of a MoE layer in eager PyTorch, on one GPU.
struct EagerPhase {
    std::string phase;  ///< route, plan, permute, gemm1, activation, gemm2, combine
    std::int64_t tokens = 0;
    std::int64_t rows = 0;     ///< of all experts together
    std::int64_t experts = 0;  ///< on this GPU; rows are spread over them at random, evenly
    std::int64_t hidden = 0;
    std::int64_t inner = 0;  ///< of one expert, which is gated
};

/// Time of the phase called on an idle card, as validation/h200/eager_phases.csv measures it;
/// nothing when it is not modelled.
std::optional<Ps> predict_eager(const Gpu& gpu, const EagerPhase& phase);

}  // namespace moehub
