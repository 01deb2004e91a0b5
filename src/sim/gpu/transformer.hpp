/// What a GPU runs of a transformer outside its MoE layers, operator by operator, as Megatron-Core
/// with Transformer Engine issues it. docs/end-to-end.md lists the same.
#pragma once
#include "sim/gpu/attention.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"

#include <moehub/model.hpp>

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace moehub {

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
using Operations = std::vector<Operation>;  ///< in forward order; backward runs from the last

/// The tokens of one GPU, cut into sequences; the last may be shorter.
struct Sequences {
    std::int64_t tokens = 0;
    std::int64_t length = 0;
};

/// Of the fullest of `gpus` GPUs. `asked` is the length wanted, 0: the model's.
Sequences sequences_of(const Model& model, std::int64_t tokens, int gpus, int asked);

/// From the end of one FFN to the start of the next: residual add, norm, attention, residual add,
/// norm. `window`: tokens a query looks back, 0: all.
Operations attention_block(const Model& model, const Sequences& sequences, int window);

/// Of that, what lies between attention's input matrix (of latent attention: the matrices down to
/// its latents) and its output matrix; all of it counts as attention.
Operations attention_core(const Model& model, const Sequences& sequences, int window);

/// Of a dense layer's FFN, what lies between its matrices.
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

}  // namespace moehub
