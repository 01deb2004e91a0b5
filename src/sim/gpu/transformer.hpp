/// What a GPU runs of a transformer outside its MoE layers, and how long it takes.
#pragma once
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <moehub/gpu.hpp>
#include <moehub/layer_options.hpp>
#include <moehub/model.hpp>
#include <moehub/units.hpp>

#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <variant>
#include <vector>

namespace moehub {

/// What one GPU holds of an attention layer. The queries are the last of the keys, so `keys` is at
/// least `queries`: more when earlier keys come from a cache or from other GPUs.
struct AttentionShape {
    std::int64_t batch = 1;     ///< sequences
    std::int64_t heads = 0;     ///< heads of the queries
    std::int64_t kv_heads = 0;  ///< heads of keys and values; divides `heads`
    std::int64_t queries = 0;   ///< queries of one sequence
    std::int64_t keys = 0;
    std::int64_t qk_dim = 0;  ///< elements of a query and of a key
    std::int64_t v_dim = 0;   ///< elements of a value
    std::int64_t window = 0;  ///< a query sees so many keys up to its own; 0: all
    bool causal = true;       ///< a query sees no later keys
};

enum class AttentionKernel { cudnn, flash2 };

/// Attention as cuDNN and FlashAttention-2 compute it, bf16: seconds of the kernel alone, launch
/// included. `clock` is the share of the full clock.
double attention_forward_seconds(const Gpu& gpu, const AttentionShape& shape,
                                 AttentionKernel kernel = AttentionKernel::cudnn, double clock = 1);

/// Gradients of queries, keys and values.
double attention_backward_seconds(const Gpu& gpu, const AttentionShape& shape,
                                  AttentionKernel kernel = AttentionKernel::cudnn,
                                  double clock = 1);

// Operators, one by one, as Megatron-Core with Transformer Engine issues them. docs/end-to-end.md
// lists the same.

struct AttentionCall {
    AttentionShape shape;
    bool backward = false;
};

/// RMSNorm; backward it reads the rows and their gradients.
struct NormCall {
    std::int64_t rows = 0;
    std::int64_t width = 0;  ///< elements
    bool backward = false;
};

/// Rows added to those of a table, by atomics.
struct RowAdd {
    std::int64_t rows = 0;
    double width = 0;  ///< bytes of a row
};

using Kernel = std::variant<GemmShape, Traffic, AttentionCall, NormCall, RowAdd>;

enum class Part { attention, norms, dense, head };
inline constexpr std::size_t kParts = 4;

/// One step of the model; each kernel is one operator that the host issues.
struct Operation {
    std::string_view name;
    Part part;
    std::vector<Kernel> forward;
    std::vector<Kernel> backward;
};
using Operations = std::vector<Operation>;  ///< listed in forward order; backward from the last

/// The tokens of one GPU, cut into sequences; the last may be shorter.
struct Sequences {
    std::int64_t tokens = 0;
    std::int64_t length = 0;
};

/// The sequences of the fullest of `gpus` GPUs. `asked` is the length wanted, 0: the model's.
Sequences sequences_of(const Model& model, std::int64_t tokens, int gpus, int asked);

/// Operations from the end of one FFN to the start of the next: residual add, norm, attention,
/// residual add, norm. `window`: tokens a query looks back, 0: all.
Operations attention_block(const Model& model, const Sequences& sequences, int window);

/// The part of an attention block between attention's input matrix (of latent attention: the
/// matrices down to its latents) and its output matrix; all of it counts as attention.
Operations attention_core(const Model& model, const Sequences& sequences, int window);

/// What lies between the matrices of a dense layer's FFN.
Operations activation_alone(const Model& model, std::int64_t tokens);

/// The FFN of a dense layer, its norm and residual add aside.
Operations dense_ffn(const Model& model, std::int64_t tokens);

/// What a model has once: embedding, last norm, logits of all tokens, and in training the loss.
Operations head(const Model& model, std::int64_t tokens, bool training);

/// Attention kernels of one layer: whole sequences, and a shorter one where they do not come out.
std::vector<AttentionShape> attention_shapes(const Model& model, const Sequences& sequences,
                                             int window);

/// Multiplications and additions of one forward pass per token of the model's mathematics: its
/// matrices (the embedding is no product), and the queries and keys that see each other.
double flops_per_token(const Model& model, const Sequences& sequences);

// How long a GPU takes for a list of operators, issued by an eager host or as a CUDA graph.

/// Seconds of the kernel alone, launch included.
double kernel_seconds(const Gpu& gpu, const Kernel& kernel);

struct BlockTime {
    std::array<Ps, kParts> kernels{};  ///< time of kernels by Part
    Ps host = 0;                       ///< time in which no kernel ran: the next was not yet issued

    Ps total() const { return std::accumulate(kernels.begin(), kernels.end(), host); }
    Ps of(Part part) const { return kernels[static_cast<std::size_t>(part)]; }
};

/// Eager: the host starts to issue when the block starts, one kernel every eager_launch, and never
/// waits; kernel i ends at max(end of the one before, i · eager_launch) + its time.
BlockTime block_time(const Gpu& gpu, const Operations& operations, Pass pass, bool eager);

/// The gradients of weights in a block's backward pass: the second of a matrix's two GEMMs.
Ps weight_gradients_time(const Gpu& gpu, const Operations& operations);

}  // namespace moehub
