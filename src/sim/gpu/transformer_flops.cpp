// Shapes of attention, and the operations that the model's mathematics asks for.
#include "sim/gpu/transformer.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// Queries and keys of one causal sequence that see each other.
double pairs(std::int64_t length, std::int64_t window) {
    const std::int64_t seen = window > 0 ? std::min(window, length) : length;
    return 0.5 * static_cast<double>(seen) * static_cast<double>(seen + 1) +
           static_cast<double>(length - seen) * static_cast<double>(seen);
}

double attention_flops(const Model& model, const Sequences& sequences, int window) {
    double flops = 0;
    for (const AttentionShape& shape : attention_shapes(model, sequences, window))
        flops += 2 * static_cast<double>(shape.batch * shape.heads) *
                 static_cast<double>(shape.qk_dim + shape.v_dim) * pairs(shape.queries, window);
    return flops;
}

}  // namespace

std::vector<AttentionShape> attention_shapes(const Model& model, const Sequences& sequences,
                                             int window) {
    const Attention& a = model.attention;
    const bool mla = a.kind == Attention::Kind::mla;
    AttentionShape whole;
    whole.batch = sequences.tokens / sequences.length;
    whole.heads = a.heads;
    whole.kv_heads = mla ? a.heads : a.kv_heads;
    whole.queries = whole.keys = sequences.length;
    whole.qk_dim = mla ? a.qk_nope_head_dim + a.qk_rope_head_dim : a.head_dim;
    whole.v_dim = mla ? a.v_head_dim : a.head_dim;
    whole.window = window;
    std::vector<AttentionShape> shapes{whole};
    if (const std::int64_t rest = sequences.tokens % sequences.length; rest > 0) {
        AttentionShape shorter = whole;
        shorter.batch = 1;
        shorter.queries = shorter.keys = rest;
        shapes.push_back(shorter);
    }
    return shapes;
}

double flops_per_token(const Model& model, const Sequences& sequences) {
    const std::int64_t embedding =
        model.tied_embeddings ? 0 : std::int64_t{model.vocab} * model.hidden;
    const int windowed = model.attention.window_layers;
    const double attention = (model.layers - windowed) * attention_flops(model, sequences, 0) +
                             windowed * attention_flops(model, sequences, model.attention.window);
    return 2 * static_cast<double>(active_parameters(model) - embedding) +
           attention / static_cast<double>(sequences.tokens);
}

}  // namespace moehub
