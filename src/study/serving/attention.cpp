/// Attention of all layers on one rank. GQA: q, k and v in one product, attention, output. MLA: q_a
/// and kv_a in one product, q_b, and where tokens decode the absorbed halves of kv_b as one product
/// of the same weights and operations (heads beside one another), attention over the latent,
/// output; prompts expand the latent by kv_b instead.
#include "study/serving/operators.hpp"

#include <algorithm>

namespace moehub {
namespace {

constexpr auto kLinear = OperatorKind::linear;
constexpr auto kAttention = OperatorKind::attention;

void write_gqa_core(OperatorWriter& writer, const RankLoad& load, double count,
                    std::int64_t window) {
    const Attention& a = writer.what().model.attention;
    const int tp = writer.what().layout.attention_tp;
    const NumberFormat cache = writer.what().formats.cache;
    const std::int64_t heads = a.heads / tp;
    const std::int64_t kv_heads = std::max(1, a.kv_heads / tp);
    if (count == 0) return;
    const std::string suffix = window > 0 ? " (window)" : "";
    // Guesses of a request see the same cache: so many more query heads on its keys.
    if (load.requests > 0)
        writer.kernel("attention" + suffix, kAttention, count, writer.what().engine.attention,
                      DecodeCall{cache, load.requests, load.context,
                                 heads * load.tokens_per_request, kv_heads, a.head_dim, window});
    if (load.prompts > 0)
        writer.kernel("prompts' attention" + suffix, kAttention, count,
                      writer.what().engine.attention,
                      PrefillCall{NumberFormat::bf16, cache, load.prompts, load.prompt_tokens,
                                  load.prompt_tokens + load.prompt_context, heads, kv_heads,
                                  a.head_dim, window});
}

void write_gqa(OperatorWriter& writer, const RankLoad& load) {
    const Model& model = writer.what().model;
    const Attention& a = model.attention;
    const int tp = writer.what().layout.attention_tp;
    const NumberFormat format = writer.what().formats.attention;
    const std::int64_t heads = a.heads / tp;
    const std::int64_t kv_heads = std::max(1, a.kv_heads / tp);
    const double layers = model.layers;
    writer.linear("qkv", kLinear, layers,
                  {format, load.tokens, (heads + 2 * kv_heads) * a.head_dim, model.hidden});
    const int windowed = a.window > 0 ? a.window_layers : 0;
    write_gqa_core(writer, load, model.layers - windowed, 0);
    write_gqa_core(writer, load, windowed, a.window);
    writer.linear("o", kLinear, layers, {format, load.tokens, model.hidden, heads * a.head_dim});
}

/// The products that decoding absorbs kv_b into, and attention over the latent.
void write_mla_decode(OperatorWriter& writer, const RankLoad& load) {
    const Model& model = writer.what().model;
    const Attention& a = model.attention;
    const std::int64_t heads = a.heads / writer.what().layout.attention_tp;
    const std::int64_t tokens = load.requests * load.tokens_per_request;
    const double layers = model.layers;
    writer.linear("kv_b absorbed, keys", kLinear, layers,
                  {NumberFormat::bf16, tokens, heads * a.kv_lora_rank, a.qk_nope_head_dim});
    writer.kernel("attention", kAttention, layers, writer.what().engine.mla,
                  MlaDecodeCall{writer.what().formats.cache, load.requests, load.context,
                                heads * load.tokens_per_request});
    writer.linear("kv_b absorbed, values", kLinear, layers,
                  {NumberFormat::bf16, tokens, heads * a.v_head_dim, a.kv_lora_rank});
}

void write_mla_prompts(OperatorWriter& writer, const RankLoad& load) {
    const Model& model = writer.what().model;
    const Attention& a = model.attention;
    const std::int64_t heads = a.heads / writer.what().layout.attention_tp;
    const std::int64_t whole = load.prompt_tokens + load.prompt_context;
    const double layers = model.layers;
    writer.linear("kv_b", kLinear, layers,
                  {writer.what().formats.attention, load.prompts * whole,
                   heads * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank});
    // The kernel knows whole prompts: of one whose beginning is cached, the scores of its rest.
    const double new_part = static_cast<double>(load.prompt_tokens) *
                            static_cast<double>(whole + load.prompt_context) /
                            (static_cast<double>(whole) * static_cast<double>(whole));
    const double seconds = writer.kernel_seconds(
        writer.what().engine.mla,
        MlaPrefillCall{writer.what().formats.cache, load.prompts, whole, heads});
    writer.add({"prompts' attention", kAttention, layers, seconds * new_part});
}

void write_mla(OperatorWriter& writer, const RankLoad& load) {
    const Model& model = writer.what().model;
    const Attention& a = model.attention;
    const std::int64_t heads = a.heads / writer.what().layout.attention_tp;
    const NumberFormat format = writer.what().formats.attention;
    const double layers = model.layers;
    const std::int64_t key = a.qk_nope_head_dim + a.qk_rope_head_dim;
    const std::int64_t latent = a.kv_lora_rank + a.qk_rope_head_dim;
    const bool low_rank = a.q_lora_rank > 0;
    writer.linear(
        low_rank ? "q_a, kv_a" : "q, kv_a", kLinear, layers,
        {format, load.tokens, latent + (low_rank ? a.q_lora_rank : heads * key), model.hidden});
    if (low_rank)
        writer.linear("q_b", kLinear, layers, {format, load.tokens, heads * key, a.q_lora_rank});
    if (load.requests > 0) write_mla_decode(writer, load);
    if (load.prompts > 0) write_mla_prompts(writer, load);
    writer.linear("o", kLinear, layers, {format, load.tokens, model.hidden, heads * a.v_head_dim});
}

}  // namespace

void write_attention(OperatorWriter& writer, const RankLoad& load) {
    const Model& model = writer.what().model;
    if (model.attention.kind == Attention::Form::mla)
        write_mla(writer, load);
    else
        write_gqa(writer, load);
    const double row = kBf16Bytes * model.hidden;
    writer.all_reduce("all-reduce after attention", OperatorKind::all_reduce, model.layers,
                      row * static_cast<double>(load.tokens));
}

}  // namespace moehub
