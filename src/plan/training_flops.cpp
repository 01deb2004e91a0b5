/// FLOPs of a token, as Megatron counts: a matrix of w weights takes 2w forward and 4w backward;
/// attention of a sequence of s tokens 2s(d_qk + d_v) a head and token forward, twice that
/// backward, and half of it where scores above the diagonal do not count.
#include <moehub/training.hpp>

#include <algorithm>

namespace moehub {
namespace {

double attention_scores(const Attention& a, std::int64_t sequence, bool causal, bool windowed) {
    const bool mla = a.kind == Attention::Form::mla;
    const double widths =
        mla ? a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim : 2.0 * a.head_dim;
    auto keys = static_cast<double>(sequence) * (causal ? 0.5 : 1);
    if (windowed && a.window > 0) keys = std::min(keys, static_cast<double>(a.window));
    return 2 * keys * a.heads * widths;
}

/// Weights that a token multiplies in one MoE layer.
double moe_layer_weights(const Model& model) {
    Model one = model;
    one.layers = 1;
    one.dense_layers = 0;
    one.vocab = 0;
    return static_cast<double>(active_parameters(one));
}

}  // namespace

double training_flops(const Model& model, std::int64_t sequence, bool causal, bool mtp) {
    const Attention& a = model.attention;
    const int further = mtp ? model.mtp_layers : 0;
    const int windowed = a.window > 0 ? a.window_layers : 0;
    const double head = static_cast<double>(model.hidden) * model.vocab;
    const double embeddings = (model.tied_embeddings ? 1 : 2) * head;
    // A layer of multi-token prediction joins two rows, runs a layer and has logits of its own.
    const double joined = 2.0 * model.hidden * model.hidden;
    const double weights = static_cast<double>(active_parameters(model)) - embeddings + head +
                           further * (moe_layer_weights(model) + joined + head);
    const double scores =
        (model.layers + further - windowed) * attention_scores(a, sequence, causal, false) +
        windowed * attention_scores(a, sequence, causal, true);
    return 3 * (2 * weights + scores);
}

}  // namespace moehub
