/// The field table of Model, and how documents fill it.
#include "model/records.hpp"

namespace moehub {
namespace {

// Together they keep every parameter count within an int64.
constexpr Limits kLayers{0, 1000};
constexpr Limits kExperts{0, 10000};
constexpr Limits kWidth{0, 1 << 20};
constexpr Limits kHeads{0, 4096};

Fields fields_of(Attention& a) {
    constexpr Need optional = Need::optional;
    return {
        {"kind", choice(a.kind, {"gqa", "mla"}), Kind::choice, {}, "grouped query or latent"},
        {"heads", &a.heads, Kind::count, {1, kHeads.max}, "query heads"},
        {"kv_heads", &a.kv_heads, Kind::count, {1, kHeads.max}, "key and value heads"},
        {"head_dim", &a.head_dim, Kind::count, kHeads, "gqa: width of a head", optional},
        {"q_lora_rank", &a.q_lora_rank, Kind::count, kWidth, "mla; 0: direct queries", optional},
        {"kv_lora_rank", &a.kv_lora_rank, Kind::count, kWidth, "mla: cached latent", optional},
        {"qk_nope_head_dim", &a.qk_nope_head_dim, Kind::count, kHeads, "mla", optional},
        {"qk_rope_head_dim", &a.qk_rope_head_dim, Kind::count, kHeads, "mla", optional},
        {"v_head_dim", &a.v_head_dim, Kind::count, kHeads, "mla", optional},
        {"window", &a.window, Kind::count, {0, 1 << 30}, "tokens; 0: unlimited", optional},
        {"window_layers", &a.window_layers, Kind::count, kLayers, "layers it holds for", optional},
        {"qk_norm", &a.qk_norm, Kind::flag, {}, "a norm of queries and keys", optional},
    };
}

Model from_chain(const std::vector<Document>& chain, const Overrides& overrides) {
    Model model;
    model.name = chain.back().name;
    check(model, fill(fields_of(model), chain, overrides));
    return model;
}

}  // namespace

Fields fields_of(Model& m) {
    constexpr Need optional = Need::optional;
    Fields fields{
        {"name", &m.name, Kind::text, {}, "preset or file", optional},
        {"title", &m.title, Kind::text, {}, "for moehub list", optional},
        {"layers", &m.layers, Kind::count, {1, kLayers.max}, "dense ones included"},
        {"dense_layers", &m.dense_layers, Kind::count, kLayers, "first, without experts", optional},
        {"mtp_layers", &m.mtp_layers, Kind::count, kLayers, "multi-token prediction", optional},
        {"hidden", &m.hidden, Kind::count, {1, 1 << 17}, "width of a token"},
        {"vocab", &m.vocab, Kind::count, {1, 1 << 24}, "rows of the embedding"},
        {"tied_embeddings", &m.tied_embeddings, Kind::flag, {}, "one matrix, in and out", optional},
        {"sequence", &m.sequence, Kind::count, {1, 1 << 30}, "default tokens"},
        {"batch", &m.batch, Kind::count, {1, 1 << 20}, "default sequences", optional},
        {"experts", &m.experts, Kind::count, kExperts, "routed; 0: dense model"},
        {"top_k", &m.top_k, Kind::count, kExperts, "routed experts of a token", optional},
        {"expert_ffn", &m.expert_ffn, Kind::count, kWidth, "of a routed expert", optional},
        {"expert_groups", &m.expert_groups, Kind::count, {1, 1024}, "routing groups", optional},
        {"top_groups", &m.top_groups, Kind::count, {1, 1024}, "groups of a token", optional},
        {"shared_experts", &m.shared_experts, Kind::count, {0, 64}, "for every token", optional},
        {"shared_ffn", &m.shared_ffn, Kind::count, kWidth, "of one shared expert", optional},
        {"dense_ffn", &m.dense_ffn, Kind::count, kWidth, "of a dense layer", optional},
        {"gated", &m.gated, Kind::flag, {}, "gate, up, down; else up, down", optional},
    };
    nest(fields, "attention.", fields_of(m.attention));
    return fields;
}

Model load_model(const std::string& name_or_path, const Overrides& overrides) {
    return from_chain(load_chain("models", name_or_path), overrides);
}

Model parse_model(std::string_view text, const std::string& origin) {
    return from_chain(parse_chain("models", text, origin), {});
}

std::string to_toml(const Model& model) {
    Model copy = model;
    return print_toml(fields_of(copy));
}

std::string to_json(const Model& model) {
    Model copy = model;
    return print_json(fields_of(copy));
}

}  // namespace moehub
