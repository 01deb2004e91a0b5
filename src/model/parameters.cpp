/// Parameter counts of a Model: the sum of its matrices.
///   gqa: hidden * head_dim * (2 * heads + 2 * kv_heads)
///   mla: queries (through q_lora_rank or direct), the shared latent and its expansion, output
///   FFN: 3 (gated) or 2 matrices of hidden * inner width; a router of hidden * experts
#include <moehub/model.hpp>

namespace moehub {
namespace {

using Count = std::int64_t;

Count attention_weights(const Model& m) {
    const Attention& a = m.attention;
    const Count hidden = m.hidden;
    const Count heads = a.heads;
    if (a.kind == Attention::Kind::gqa)
        return hidden * a.head_dim * (2 * heads + 2 * Count{a.kv_heads});
    const Count query = heads * (a.qk_nope_head_dim + a.qk_rope_head_dim);
    const Count queries = a.q_lora_rank > 0 ? a.q_lora_rank * (hidden + query) : hidden * query;
    const Count latent = hidden * (a.kv_lora_rank + a.qk_rope_head_dim);
    const Count expansion = a.kv_lora_rank * heads * (a.qk_nope_head_dim + a.v_head_dim);
    return queries + latent + expansion + heads * a.v_head_dim * hidden;
}

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
    return m.layers * attention_weights(m) + moe_layers * moe +
           dense_layers * ffn_weights(m, m.dense_ffn) + embeddings;
}

}  // namespace

std::int64_t parameters(const Model& model) {
    return weights(model, model.experts);
}

std::int64_t active_parameters(const Model& model) {
    return weights(model, model.top_k);
}

}  // namespace moehub
