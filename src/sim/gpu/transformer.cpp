/// Operators of a transformer, bf16. A matrix [k, n] applied to t tokens is one GEMM forward and
/// two backward:
///
///     y[t, n] = x[t, k] · w[k, n],    dx[t, k] = dy[t, n] · wᵀ,    dw[k, n] = xᵀ · dy[t, n].
///
/// Everything between matrices and attention only moves bytes: a norm reads and writes its rows,
/// backward it reads rows and gradients; a residual add reads two and writes one, and so does the
/// sum of the gradients of its two branches.
#include "sim/gpu/transformer.hpp"

#include <algorithm>

namespace moehub {
namespace {

double bytes(std::int64_t rows, std::int64_t width) {
    return kBf16 * static_cast<double>(rows) * static_cast<double>(width);
}

struct Matrix {
    std::int64_t k = 0;
    std::int64_t n = 0;
};

Operation linear(std::string_view name, Part part, std::int64_t tokens, Matrix w) {
    return {name,
            part,
            {GemmShape{tokens, w.k, w.n, kCold}},
            {GemmShape{tokens, w.n, w.k, kCold}, GemmShape{w.n, tokens, w.k, kCold}}};
}

Operation norm(std::string_view name, std::int64_t tokens, std::int64_t width) {
    return {name, Part::norms, {NormCall{tokens, width, false}}, {NormCall{tokens, width, true}}};
}

Operation residual(std::string_view name, const Model& model, std::int64_t tokens) {
    const Traffic add = residual_traffic(static_cast<double>(tokens) * model.hidden);
    return {name, Part::norms, {add}, {add}};
}

/// Reads and writes the same number of bytes, backward the other way round.
Operation pass_over(std::string_view name, double moved) {
    return {name, Part::attention, {Traffic{moved, moved}}, {Traffic{moved, moved}}};
}

Operation activation(const Model& model, std::int64_t tokens) {
    const auto out = static_cast<double>(tokens) * model.dense_ffn;
    if (!model.gated)
        return {"activation",
                Part::dense,
                {Traffic{kBf16 * out, kBf16 * out}},
                {Traffic{2 * kBf16 * out, kBf16 * out}}};
    return {"activation",
            Part::dense,
            {fused_activation_traffic(out)},
            {Traffic{3 * kBf16 * out, 2 * kBf16 * out}}};
}

/// What lies between the matrix of queries, keys and values and attention.
void split_gqa(const Model& model, std::int64_t tokens, Operations& list) {
    const Attention& a = model.attention;
    const std::int64_t query = std::int64_t{a.heads} * a.head_dim;
    const std::int64_t key = std::int64_t{a.kv_heads} * a.head_dim;
    // Split and reshape are views, but grouped queries lie between their keys and are copied out;
    // backward, the three gradients are put side by side again.
    const double all = bytes(tokens, query + 2 * key);
    Operation split{"split", Part::attention, {}, {Traffic{all, all}}};
    if (a.heads > a.kv_heads) {
        const double queries = bytes(tokens, query);
        split.forward.emplace_back(Traffic{queries, queries});
    }
    list.push_back(std::move(split));
    list.push_back(pass_over("rope of queries", bytes(tokens, query)));
    list.push_back(pass_over("rope of keys", bytes(tokens, key)));
}

void project_gqa(const Model& model, std::int64_t tokens, Operations& list) {
    const Attention& a = model.attention;
    const std::int64_t heads = std::int64_t{a.heads} + 2 * std::int64_t{a.kv_heads};
    list.push_back(
        linear("query, key, value", Part::attention, tokens, {model.hidden, heads * a.head_dim}));
    split_gqa(model, tokens, list);
}

/// Queries of all heads from their latent, or without one from the rows themselves.
void expand_queries(const Model& model, std::int64_t tokens, Operations& list) {
    const Attention& a = model.attention;
    const std::int64_t query = std::int64_t{a.heads} * (a.qk_nope_head_dim + a.qk_rope_head_dim);
    if (a.q_lora_rank > 0) {
        list.push_back(norm("norm of the query's latent", tokens, a.q_lora_rank));
        list.push_back(linear("query, up", Part::attention, tokens, {a.q_lora_rank, query}));
    } else {
        list.push_back(linear("query", Part::attention, tokens, {model.hidden, query}));
    }
}

/// Keys and values of all heads from their latent.
void expand_keys(const Model& model, std::int64_t tokens, Operations& list) {
    const Attention& a = model.attention;
    const std::int64_t heads = a.heads;
    list.push_back(norm("norm of the latent", tokens, a.kv_lora_rank));
    const std::int64_t expanded = heads * (a.qk_nope_head_dim + a.v_head_dim);
    list.push_back(
        linear("key and value, up", Part::attention, tokens, {a.kv_lora_rank, expanded}));
    // Queries are turned in place; keys and values are written anew, the turned part for each head.
    list.push_back(pass_over("rope of queries", bytes(tokens, heads * a.qk_rope_head_dim)));
    const double from = bytes(tokens, expanded + a.qk_rope_head_dim);
    const double to = bytes(tokens, expanded + heads * a.qk_rope_head_dim);
    list.push_back({"rope of keys", Part::attention, {Traffic{from, to}}, {Traffic{to, from}}});
}

void project_mla(const Model& model, std::int64_t tokens, Operations& list) {
    const Attention& a = model.attention;
    // Two matrices read the same rows; backward, their gradients are added.
    const double rows = bytes(tokens, model.hidden);
    list.push_back({"shared input", Part::attention, {}, {Traffic{2 * rows, rows}}});
    if (a.q_lora_rank > 0)
        list.push_back(
            linear("query, down", Part::attention, tokens, {model.hidden, a.q_lora_rank}));
    expand_queries(model, tokens, list);
    list.push_back(linear("key and value, down", Part::attention, tokens,
                          {model.hidden, a.kv_lora_rank + a.qk_rope_head_dim}));
    expand_keys(model, tokens, list);
}

void attend(const Model& model, const Sequences& sequences, int window, Operations& list) {
    for (const AttentionShape& shape : attention_shapes(model, sequences, window))
        list.push_back({"attention",
                        Part::attention,
                        {AttentionCall{shape, false}},
                        {AttentionCall{shape, true}}});
}

// Shapes of attention, and the operations that the model's mathematics asks for.

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

Sequences sequences_of(const Model& model, std::int64_t tokens, int gpus, int asked) {
    const std::int64_t share = (tokens - 1) / gpus + 1;
    const std::int64_t wanted = asked > 0 ? asked : model.sequence;
    return {share, wanted > 0 ? std::min(share, wanted) : share};
}

Operations attention_block(const Model& model, const Sequences& sequences, int window) {
    const Attention& a = model.attention;
    const bool mla = a.kind == Attention::Form::mla;
    const std::int64_t tokens = sequences.tokens;
    Operations list;
    list.push_back(residual("residual add of the FFN before", model, tokens));
    list.push_back(norm("norm before attention", tokens, model.hidden));
    if (mla)
        project_mla(model, tokens, list);
    else
        project_gqa(model, tokens, list);
    attend(model, sequences, window, list);
    const std::int64_t out = std::int64_t{a.heads} * (mla ? a.v_head_dim : a.head_dim);
    list.push_back(linear("output", Part::attention, tokens, {out, model.hidden}));
    list.push_back(residual("residual add of attention", model, tokens));
    list.push_back(norm("norm before the FFN", tokens, model.hidden));
    return list;
}

Operations attention_core(const Model& model, const Sequences& sequences, int window) {
    Operations list;
    if (model.attention.kind == Attention::Form::mla) {
        expand_queries(model, sequences.tokens, list);
        expand_keys(model, sequences.tokens, list);
    } else {
        split_gqa(model, sequences.tokens, list);
    }
    attend(model, sequences, window, list);
    for (Operation& one : list) one.part = Part::attention;
    return list;
}

Operations activation_alone(const Model& model, std::int64_t tokens) {
    return {activation(model, tokens)};
}

Operations dense_ffn(const Model& model, std::int64_t tokens) {
    const std::int64_t matrices = model.gated ? 2 : 1;
    return {linear("up", Part::dense, tokens, {model.hidden, matrices * model.dense_ffn}),
            activation(model, tokens),
            linear("down", Part::dense, tokens, {model.dense_ffn, model.hidden})};
}

Operations head(const Model& model, std::int64_t tokens, bool training) {
    const double rows = bytes(tokens, model.hidden);
    const double logits = bytes(tokens, model.vocab);
    Operation last_norm = norm("last norm", tokens, model.hidden);
    last_norm.part = Part::head;
    Operations list{
        {"embedding", Part::head, {Traffic{rows, rows}}, {RowAdd{tokens, bytes(1, model.hidden)}}},
        std::move(last_norm),
        linear("logits", Part::head, tokens, {model.hidden, model.vocab})};
    // Cross entropy in one kernel each way: forward sums over the logits, backward writes theirs.
    if (training)
        list.push_back({"loss", Part::head, {Traffic{logits, 0}}, {Traffic{logits, logits}}});
    return list;
}

std::vector<AttentionShape> attention_shapes(const Model& model, const Sequences& sequences,
                                             int window) {
    const Attention& a = model.attention;
    const bool mla = a.kind == Attention::Form::mla;
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
