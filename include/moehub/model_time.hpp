/// A whole model, forward or forward and backward: its MoE layers, or of a dense model its
/// tensor-parallel sub-layers, simulated under each of several systems; everything else timed by
/// the GPU's model and the same for all of them.
///
///     ModelOptions options;
///     options.training = true;
///     for (const ModelTime& one : simulate_models(input, {"megatron-te", "moe-hub"}, options))
///         fmt::print("{} {:.1f} ms\n", one.system, to_us(one.total) / 1000);
///
/// Beside experts tokens are data parallel: every GPU holds its share of them in whole sequences,
/// and all weights but the experts'; with `attention_gpus` groups of GPUs share them and
/// attention's weights. A dense model is under tensor parallelism: every GPU computes all tokens,
/// on its share of heads, FFN and vocabulary. docs/end-to-end.md says what runs and what is left
/// out.
#pragma once
#include <moehub/tp.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct ModelOptions {
    LayerOptions layer;      ///< how MoE layers are simulated; `pass` is set by what runs
    bool training = false;   ///< forward and backward; false: forward alone
    int sequence = 0;        ///< tokens of a sequence; 0: the model's. At most a GPU's tokens
    bool eager = true;       ///< outside what is simulated a host issues operators one by one;
                             ///< false: CUDA graphs, kernels back to back
    int attention_gpus = 0;  ///< beside experts: GPUs that share attention, a divisor of a node's;
                             ///< 0: data parallel. Forward only
    std::optional<SystemSpec> attention_system;  ///< what GPUs share attention by; none: tp-nvls
    /// Dense models in training: while the rows of a sub-layer travel and nothing else runs, the
    /// gradient of its first matrix is computed, as Megatron does; false: it waits for the
    /// sub-layer.
    bool overlap_gradients = false;
    std::string baseline;  ///< one of the systems; empty: as baseline_of() says
    int threads = 0;       ///< systems simulated at a time; 0: as many as there are cores
    /// Called after each simulated layer with (layers done, layers in all), by one thread at a
    /// time. May be empty.
    std::function<void(std::size_t, std::size_t)> progress;
};

/// One part of the model that occurs `count` times; times of one occurrence, on the slowest GPU.
struct LayerTypeTime {
    std::string name;
    int count = 0;
    Ps forward = 0;
    Ps backward = 0;           ///< 0 without training
    Ps beside = 0;             ///< time of a forward pass beside a backward one, instead of both
    Breakdown simulated = {};  ///< breakdown of both ways, where the part was simulated; else all 0

    Ps total() const { return count * (forward + backward + beside); }
};

/// A layer of one micro-batch forward beside a layer of another backward, attention and all.
struct OverlappedTime {
    Ps period = 0;         ///< time from one such pair to the next
    Ps busy = 0;           ///< time of the period in which kernels run
    Ps compute = 0;        ///< what kernels would take with all SMs
    Ps communication = 0;  ///< time in which rows are underway, and hold some SMs
    Ps host = 0;           ///< time that attention waits for its eager host
};

/// One sub-layer that was simulated.
struct SubLayerResult {
    SubLayer part = SubLayer::l1;
    LayerResult result;
};

struct ModelTime {
    std::string system;
    SystemSpec spec;  ///< the system of that name, with its software
    /// Parts of the model that it has, in its order. The last, "host", is what the GPU waits for
    /// its eager host outside what is simulated, over the whole model; the others are kernels.
    std::vector<LayerTypeTime> parts;
    std::optional<LayerResult> moe;  ///< one MoE layer by itself, forward
    std::optional<LayerResult> moe_backward;
    std::vector<SubLayerResult> sub_layers;    ///< those of a dense model or shared attention
    std::optional<OverlappedTime> overlapped;  ///< times of systems that overlap passes
    Ps total = 0;                              ///< time of all parts
    double flops = 0;  ///< FLOPs of the mathematics over all GPUs: no padding, causal attention
    double tokens_per_second = 0;
    double mfu = 0;  ///< model FLOP utilisation: share of the GPUs' bf16 peak
};

/// Times in the order asked for. Throws as compare_systems() does, and InputError for a model
/// without experts.
std::vector<ModelTime> simulate_models(const LayerInput& input,
                                       const std::vector<SystemSpec>& systems,
                                       const ModelOptions& options = {});

struct DenseInput {
    Machine machine;  ///< one node; all of its GPUs share the model
    Model model;      ///< without experts
    std::int64_t tokens = 0;
};

/// Throws InputError for a model with experts, or one that its GPUs cannot share, and as check_tp
/// does.
void check_dense_models(const DenseInput& input, const std::vector<SystemSpec>& systems,
                        const ModelOptions& options = {});

/// Throws as check_dense_models does, then as simulate_tp does.
std::vector<ModelTime> simulate_dense_models(const DenseInput& input,
                                             const std::vector<SystemSpec>& systems,
                                             const ModelOptions& options = {});

/// The system that others are measured against: the named one of them, otherwise megatron-te, or of
/// dense models tp-nvls, where it ran, otherwise the slowest.
const ModelTime& baseline_of(const std::vector<ModelTime>& times, std::string_view named = {});

}  // namespace moehub
