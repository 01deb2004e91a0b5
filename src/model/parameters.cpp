/// Parameter counts of a Model: the sum of its matrices.
///   gqa: hidden * head_dim * (2 * heads + 2 * kv_heads)
///   mla: queries (through q_lora_rank or direct), the shared latent and its expansion, output
///   FFN: 3 (gated) or 2 matrices of hidden * inner width; a router of hidden * experts
#include "model/attention_weights.hpp"

#include <algorithm>

namespace moehub {
namespace {

using Count = std::int64_t;

Count ffn_weights(const Model& m, int inner) {
    return (m.gated ? 3 : 2) * Count{m.hidden} * inner;
}

/// All weights when every MoE layer holds `experts` routed experts.
Count weights(const Model& m, Count experts) {
    const Count moe_layers = m.moe_layers();
    const Count dense_layers = m.layers - moe_layers;
    const Count moe = experts * ffn_weights(m, m.expert_ffn) +
                      m.shared_experts * ffn_weights(m, m.shared_ffn) + Count{m.hidden} * m.experts;
    const Count embeddings = (m.tied_embeddings ? 1 : 2) * Count{m.vocab} * m.hidden;
    return m.layers * static_cast<Count>(attention_weights(m, 1)) + moe_layers * moe +
           dense_layers * ffn_weights(m, m.dense_ffn) + embeddings;
}

}  // namespace

double attention_weights(const Model& model, int tp) {
    const Attention& a = model.attention;
    const double heads = std::max(1.0, static_cast<double>(a.heads) / tp);
    const double hidden = model.hidden;
    if (a.kind == Attention::Form::gqa) {
        const double keys = std::max(1.0, static_cast<double>(a.kv_heads) / tp);
        return hidden * a.head_dim * (2 * heads + 2 * keys);
    }
    const double key = a.qk_nope_head_dim + a.qk_rope_head_dim;
    const double queries =
        a.q_lora_rank > 0 ? a.q_lora_rank * (hidden + heads * key) : hidden * heads * key;
    return queries + hidden * (a.kv_lora_rank + a.qk_rope_head_dim) +
           heads * a.kv_lora_rank * (a.qk_nope_head_dim + a.v_head_dim) +
           heads * a.v_head_dim * hidden;
}

std::int64_t parameters(const Model& model) {
    return weights(model, model.experts);
}

std::int64_t active_parameters(const Model& model) {
    return weights(model, model.top_k);
}

}  // namespace moehub
