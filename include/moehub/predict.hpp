/// Predicted times on one card: of a call of a serving engine's kernel, by the equations of
/// src/sim/kernels and the constants of a library (docs/cards.md), and of PyTorch's operators
/// (docs/gpu-model.md).
#pragma once
#include <moehub/gpu.hpp>
#include <moehub/kernel_calls.hpp>
#include <moehub/units.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace moehub {

/// Seconds of a call and what they are made of.
struct KernelCost {
    double seconds = 0;
    double start = 0;   ///< launches, first loads, last sums: what even the smallest call takes
    double tensor = 0;  ///< the products, with what SMs do beside them
    double memory = 0;  ///< HBM, at the same time as the products
    double other = 0;   ///< passes before and after: permutation, quantisation, sums of splits
    double flops = 0;   ///< FLOPs of the mathematics, without padding
    double bytes = 0;   ///< bytes to and from HBM
    double peak = 0;    ///< FLOP/s of the card in the format that the kernel multiplies in
};

/// Throws InputError, one line without the card's name, when the card has no such library, the
/// library no such kernel, the card no such number format, or the shape is impossible or does not
/// fit in the card's memory. The same arguments give the same bits.
KernelCost predict_kernel(const Gpu& gpu, const std::string& library, const KernelCall& call);

/// The card of a model whose linear layers and prompts' attention are the library's; what MoE
/// layers run stays PyTorch's, and so does the way back. Throws InputError when the card has no
/// such library; "torch" is the card as it is.
Gpu with_kernels(const Gpu& gpu, const std::string& library);

/// Times of calls of one library on one card, each shape predicted once. Not for several threads.
class PredictionCache {
  public:
    PredictionCache(Gpu gpu, std::string library);

    /// Cost of the call, as predict_kernel gives it.
    const KernelCost& cost(const KernelCall& call);
    double seconds(const KernelCall& call) { return cost(call).seconds; }

  private:
    using Key = std::array<std::int64_t, 13>;
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };
    static Key key_of(const KernelCall& call);

    Gpu gpu_;
    std::string library_;
    std::unordered_map<Key, KernelCost, Hash> known_;
};

/// Bytes that the call's inputs, weights, cache and results take in the card's memory.
double memory_of(const KernelCall& call);

/// One row of validation/h200/ops.csv without its measurement. Elements are bf16, keys int64.
struct Operator {
    std::string op;  ///< gemm, grouped_gemm, gather_rows, sum8_rows, argsort
    std::int64_t groups = 1;
    std::int64_t rows = 0;      ///< rows in total over groups
    std::int64_t max_rows = 0;  ///< rows of the fullest group
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
    std::int64_t rows = 0;    ///< rows in total over groups, spread evenly
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

/// Time of the operator as training_ops.csv measures it: called from eager PyTorch on an idle card,
/// the accumulation replayed. Nothing when it is not modelled.
std::optional<Ps> predict_training(const Gpu& gpu, const TrainingOperator& op);

/// One phase of a MoE layer in eager PyTorch, on one GPU.
struct EagerPhase {
    std::string phase;  ///< route, plan, permute, gemm1, activation, gemm2, combine
    std::int64_t tokens = 0;
    std::int64_t rows = 0;     ///< rows of all experts together
    std::int64_t experts = 0;  ///< experts on this GPU; rows are spread over them at random, evenly
    std::int64_t hidden = 0;
    std::int64_t inner = 0;  ///< inner width of one expert, which is gated
};

/// Time of the phase called on an idle card, as validation/h200/eager_phases.csv measures it;
/// nothing when it is not modelled.
std::optional<Ps> predict_eager(const Gpu& gpu, const EagerPhase& phase);

}  // namespace moehub
