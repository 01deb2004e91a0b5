#include "model/attention_weights.hpp"

#include <algorithm>

namespace moehub {

double attention_weights(const Model& model, int tp) {
    const Attention& a = model.attention;
    const double heads = std::max(1.0, static_cast<double>(a.heads) / tp);
    const double hidden = model.hidden;
    if (a.kind == Attention::Kind::gqa) {
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

}  // namespace moehub
