/// Attention of all layers on one rank. GQA: q, k and v in one product, attention, output. MLA: q_a
/// and kv_a in one product, q_b, and where tokens decode the absorbed halves of kv_b as one product
/// of the same weights and operations (heads beside one another), attention over the latent,
/// output; prompts expand the latent by kv_b instead.
#include "study/serving/operators.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// One rank's attention, and what all its products have in common.
struct RankAttention {
    OperatorWriter& writer;
    const RankLoad& load;
    const ServingCase& what = writer.what();
    const Attention& attention = what.model.attention;
    std::int64_t hidden = what.model.hidden;
    std::int64_t heads = attention.heads / what.layout.attention_tp;
    double layers = what.model.layers;

    /// A product of `m` rows in every layer.
    void linear(std::string name, NumberFormat format, std::int64_t m, std::int64_t n,
                std::int64_t k) const {
        writer.linear(std::move(name), OperatorKind::linear, layers, {format, m, n, k});
    }
};

void write_gqa_core(const RankAttention& rank, std::int64_t kv_heads, int layers,
                    std::int64_t window) {
    if (layers == 0) return;
    const RankLoad& load = rank.load;
    const NumberFormat cache = rank.what.formats.cache;
    const std::int64_t head_dim = rank.attention.head_dim;
    const std::string suffix = window > 0 ? " (window)" : "";
    const auto kernel = [&](const std::string& name, const KernelCall& call) {
        rank.writer.kernel(name + suffix, OperatorKind::attention, layers,
                           rank.what.engine.attention, call);
    };
    // Guesses of a request see the same cache: so many more query heads on its keys.
    if (load.requests > 0)
        kernel("attention",
               DecodeCall{cache, load.requests, load.context, rank.heads * load.tokens_per_request,
                          kv_heads, head_dim, window});
    if (load.prompts > 0)
        kernel("prompts' attention",
               PrefillCall{NumberFormat::bf16, cache, load.prompts, load.prompt_tokens,
                           load.prompt_tokens + load.prompt_context, rank.heads, kv_heads, head_dim,
                           window});
}

void write_gqa(const RankAttention& rank) {
    const Attention& a = rank.attention;
    const NumberFormat format = rank.what.formats.attention;
    const std::int64_t kv_heads = std::max(1, a.kv_heads / rank.what.layout.attention_tp);
    rank.linear("qkv", format, rank.load.tokens, (rank.heads + 2 * kv_heads) * a.head_dim,
                rank.hidden);
    const int windowed = a.window > 0 ? a.window_layers : 0;
    write_gqa_core(rank, kv_heads, rank.what.model.layers - windowed, 0);
    write_gqa_core(rank, kv_heads, windowed, a.window);
    rank.linear("o", format, rank.load.tokens, rank.hidden, rank.heads * a.head_dim);
}

/// The products that decoding absorbs kv_b into, and attention over the latent.
void write_mla_decode(const RankAttention& rank) {
    const Attention& a = rank.attention;
    const RankLoad& load = rank.load;
    const std::int64_t tokens = load.requests * load.tokens_per_request;
    rank.linear("kv_b absorbed, keys", NumberFormat::bf16, tokens, rank.heads * a.kv_lora_rank,
                a.qk_nope_head_dim);
    rank.writer.kernel("attention", OperatorKind::attention, rank.layers, rank.what.engine.mla,
                       MlaDecodeCall{rank.what.formats.cache, load.requests, load.context,
                                     rank.heads * load.tokens_per_request});
    rank.linear("kv_b absorbed, values", NumberFormat::bf16, tokens, rank.heads * a.v_head_dim,
                a.kv_lora_rank);
}

void write_mla_prompts(const RankAttention& rank) {
    const Attention& a = rank.attention;
    const RankLoad& load = rank.load;
    const std::int64_t whole = load.prompt_tokens + load.prompt_context;
    rank.linear("kv_b", rank.what.formats.attention, load.prompts * whole,
                rank.heads * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank);
    // The kernel knows whole prompts: of one whose beginning is cached, the scores of its rest.
    const double new_part = static_cast<double>(load.prompt_tokens) *
                            static_cast<double>(whole + load.prompt_context) /
                            (static_cast<double>(whole) * static_cast<double>(whole));
    const double seconds = rank.writer.kernel_seconds(
        rank.what.engine.mla,
        MlaPrefillCall{rank.what.formats.cache, load.prompts, whole, rank.heads});
    rank.writer.add(
        {"prompts' attention", OperatorKind::attention, rank.layers, seconds * new_part});
}

void write_mla(const RankAttention& rank) {
    const Attention& a = rank.attention;
    const NumberFormat format = rank.what.formats.attention;
    const std::int64_t tokens = rank.load.tokens;
    const std::int64_t keys = rank.heads * (a.qk_nope_head_dim + a.qk_rope_head_dim);
    const std::int64_t latent = a.kv_lora_rank + a.qk_rope_head_dim;
    const bool low_rank = a.q_lora_rank > 0;
    rank.linear(low_rank ? "q_a, kv_a" : "q, kv_a", format, tokens,
                latent + (low_rank ? a.q_lora_rank : keys), rank.hidden);
    if (low_rank) rank.linear("q_b", format, tokens, keys, a.q_lora_rank);
    if (rank.load.requests > 0) write_mla_decode(rank);
    if (rank.load.prompts > 0) write_mla_prompts(rank);
    rank.linear("o", format, tokens, rank.hidden, rank.heads * a.v_head_dim);
}

}  // namespace

void write_attention(OperatorWriter& writer, const RankLoad& load) {
    const RankAttention rank{writer, load};
    if (rank.attention.kind == Attention::Form::mla)
        write_mla(rank);
    else
        write_gqa(rank);
    const double row = kBf16Bytes * rank.what.model.hidden;
    writer.all_reduce("all-reduce after attention", OperatorKind::all_reduce, rank.layers,
                      row * static_cast<double>(load.tokens));
}

}  // namespace moehub
