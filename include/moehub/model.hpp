/// Model: the shape of a transformer, dense or with Mixture-of-Experts layers, as plain values.
#pragma once
#include <cstdint>
#include <string>

namespace moehub {

struct Attention {
    enum class Form {
        gqa,  ///< grouped query attention; kv_heads == heads is plain multi-head attention
        mla,  ///< multi-head latent attention (DeepSeek-V2): low-rank keys, values and queries
    };
    Form kind = Form::gqa;
    int heads = 0;
    int kv_heads = 0;          ///< heads of keys and values in gqa; mla: equal to heads
    int head_dim = 0;          ///< width of a head in gqa; mla uses the dimensions below
    int q_lora_rank = 0;       ///< mla; 0: queries are projected directly
    int kv_lora_rank = 0;      ///< mla: width of the cached latent
    int qk_nope_head_dim = 0;  ///< mla: part of a head without position
    int qk_rope_head_dim = 0;  ///< mla: part of a head with position, keys share it
    int v_head_dim = 0;        ///< mla: width of a head's values
    int window = 0;            ///< tokens a windowed layer looks back; 0: all layers see everything
    int window_layers = 0;     ///< how many layers are windowed
    bool qk_norm = false;      ///< queries and keys pass a norm, head by head
};

struct Model {
    std::string name;
    std::string title;     ///< one line for `moehub list`
    int layers = 0;        ///< in total, dense ones included, multi-token prediction not
    int dense_layers = 0;  ///< the first ones, which have one dense FFN instead of experts
    int mtp_layers = 0;    ///< layers of multi-token prediction, beyond `layers`
    int hidden = 0;
    int vocab = 0;
    bool tied_embeddings = false;  ///< input and output embeddings are one matrix
    int sequence = 0;              ///< default tokens of a sequence
    int batch = 1;                 ///< default sequences at a time, in total over the GPUs
    Attention attention;
    int experts = 0;         ///< routed experts of a MoE layer; 0: a dense model
    int top_k = 0;           ///< routed experts of a token
    int expert_ffn = 0;      ///< inner width of a routed expert
    int expert_groups = 1;   ///< groups that the routed experts are divided into
    int top_groups = 1;      ///< groups of experts that routing picks first
    int shared_experts = 0;  ///< shared experts, run for every token
    int shared_ffn = 0;      ///< inner width of one shared expert
    int dense_ffn = 0;       ///< inner width of a dense layer's FFN
    bool gated = true;       ///< FFNs have gate, up and down matrices (SwiGLU); false: up and down

    int moe_layers() const { return experts > 0 ? layers - dense_layers : 0; }
};

/// Throws InputError as reading it from a file would: a value outside its limits, or values that do
/// not go together.
void check(const Model& model);

/// Weights of all matrices. Norms and biases are left out (under 0.2 %), and multi-token
/// prediction, as in model cards.
std::int64_t parameters(const Model& model);

/// Weights as parameters() counts them, with top_k routed experts a layer: what one token passes
/// through, both embeddings included.
std::int64_t active_parameters(const Model& model);

}  // namespace moehub
