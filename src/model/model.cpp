/// The field table of Model, how documents fill it, and what must hold between its fields.
#include "model/records.hpp"

namespace moehub {
namespace {

// Together they keep every parameter count within an int64.
constexpr Limits kLayers{0, 1000};
constexpr Limits kExperts{0, 10000};
constexpr Limits kWidth{0, 1 << 20};
constexpr Limits kHeads{0, 4096};

Fields fields_of(Attention& a) {
    using enum FieldKind;
    constexpr Need optional = Need::optional;
    return {
        one_of("kind", a.kind, {"gqa", "mla"}, "grouped query or latent"),
        {"heads", &a.heads, count, {1, kHeads.max}, "query heads"},
        {"kv_heads", &a.kv_heads, count, {1, kHeads.max}, "key and value heads"},
        {"head_dim", &a.head_dim, count, kHeads, "gqa: width of a head", optional},
        {"q_lora_rank", &a.q_lora_rank, count, kWidth, "mla; 0: direct queries", optional},
        {"kv_lora_rank", &a.kv_lora_rank, count, kWidth, "mla: cached latent", optional},
        {"qk_nope_head_dim", &a.qk_nope_head_dim, count, kHeads, "mla", optional},
        {"qk_rope_head_dim", &a.qk_rope_head_dim, count, kHeads, "mla", optional},
        {"v_head_dim", &a.v_head_dim, count, kHeads, "mla", optional},
        {"window", &a.window, count, {0, 1 << 30}, "tokens; 0: unlimited", optional},
        {"window_layers", &a.window_layers, count, kLayers, "layers it holds for", optional},
        {"qk_norm", &a.qk_norm, flag, {}, "a norm of queries and keys", optional},
    };
}

}  // namespace

Fields fields_of(Model& m) {
    using enum FieldKind;
    constexpr Need optional = Need::optional;
    Fields fields{
        {"name", &m.name, text, {}, "preset or file", optional},
        {"title", &m.title, text, {}, "for moehub list", optional},
        {"layers", &m.layers, count, {1, kLayers.max}, "dense ones included"},
        {"dense_layers", &m.dense_layers, count, kLayers, "first, without experts", optional},
        {"mtp_layers", &m.mtp_layers, count, kLayers, "multi-token prediction", optional},
        {"hidden", &m.hidden, count, {1, 1 << 17}, "width of a token"},
        {"vocab", &m.vocab, count, {1, 1 << 24}, "rows of the embedding"},
        {"tied_embeddings", &m.tied_embeddings, flag, {}, "one matrix, in and out", optional},
        {"sequence", &m.sequence, count, {1, 1 << 30}, "default tokens"},
        {"batch", &m.batch, count, {1, 1 << 20}, "default sequences", optional},
        {"experts", &m.experts, count, kExperts, "routed; 0: dense model"},
        {"top_k", &m.top_k, count, kExperts, "routed experts of a token", optional},
        {"expert_ffn", &m.expert_ffn, count, kWidth, "of a routed expert", optional},
        {"expert_groups", &m.expert_groups, count, {1, 1024}, "routing groups", optional},
        {"top_groups", &m.top_groups, count, {1, 1024}, "groups of a token", optional},
        {"shared_experts", &m.shared_experts, count, {0, 64}, "for every token", optional},
        {"shared_ffn", &m.shared_ffn, count, kWidth, "of one shared expert", optional},
        {"dense_ffn", &m.dense_ffn, count, kWidth, "of a dense layer", optional},
        {"gated", &m.gated, flag, {}, "gate, up, down; else up, down", optional},
    };
    nest(fields, "attention.", fields_of(m.attention));
    return fields;
}

namespace {

/// Refuses fields by what was found and what other fields allow.
class Rules {
  public:
    explicit Rules(const Given& given) : given_(given) {}

    /// `why` follows the number allowed, as "with experts = 8 (my.toml:3)".
    void at_least(const std::string& key, int value, int least, const std::string& why) const {
        if (value < least)
            refuse(given_, key, "found {}, allowed {} or more {}", value, least, why);
    }
    void at_most(const std::string& key, int value, const std::string& other, int most) const {
        if (value > most)
            refuse(given_, key, "found {}, allowed at most {}", value, with(other, most));
    }
    void multiple(const std::string& key, int value, const std::string& other, int of) const {
        if (value % of != 0)
            refuse(given_, key, "found {}, allowed multiples of {}", value, with(other, of));
    }
    std::string with(const std::string& key, int value) const {
        return named(given_, key, std::to_string(value));
    }

  private:
    const Given& given_;
};

void check_attention(const Model& m, const Given& given) {
    const Attention& a = m.attention;
    const Rules rules(given);
    rules.multiple("attention.heads", a.heads, "attention.kv_heads", a.kv_heads);
    rules.at_most("attention.window_layers", a.window_layers, "layers", m.layers);
    const bool mla = a.kind == Attention::Form::mla;
    const std::string with_kind = "with " + named(given, "attention.kind", mla ? "mla" : "gqa");
    if (!mla) return rules.at_least("attention.head_dim", a.head_dim, 1, with_kind);
    rules.at_least("attention.kv_lora_rank", a.kv_lora_rank, 1, with_kind);
    rules.at_least("attention.qk_nope_head_dim", a.qk_nope_head_dim, 1, with_kind);
    rules.at_least("attention.qk_rope_head_dim", a.qk_rope_head_dim, 1, with_kind);
    rules.at_least("attention.v_head_dim", a.v_head_dim, 1, with_kind);
}

void check_experts(const Model& m, const Given& given) {
    const Rules rules(given);
    rules.at_most("top_k", m.top_k, "experts", m.experts);
    rules.multiple("experts", m.experts, "expert_groups", m.expert_groups);
    rules.at_most("top_groups", m.top_groups, "expert_groups", m.expert_groups);
    const int reach = m.experts / m.expert_groups * m.top_groups;
    if (m.top_k > reach)
        refuse(given, "top_k", "found {}, allowed at most {}: the experts of {}", m.top_k, reach,
               rules.with("top_groups", m.top_groups));
    if (m.experts > 0) {
        const std::string with_experts = "with " + rules.with("experts", m.experts);
        rules.at_least("top_k", m.top_k, 1, with_experts);
        rules.at_least("expert_ffn", m.expert_ffn, 1, with_experts);
    }
    if (m.shared_experts > 0)
        rules.at_least("shared_ffn", m.shared_ffn, 1,
                       "with " + rules.with("shared_experts", m.shared_experts));
}

}  // namespace

void check(const Model& m, const Given& given) {
    const Rules rules(given);
    rules.at_most("dense_layers", m.dense_layers, "layers", m.layers);
    check_experts(m, given);
    if (m.experts == 0)
        rules.at_least("dense_ffn", m.dense_ffn, 1, "with " + rules.with("experts", 0));
    if (m.dense_layers > 0)
        rules.at_least("dense_ffn", m.dense_ffn, 1,
                       "with " + rules.with("dense_layers", m.dense_layers));
    check_attention(m, given);
}

}  // namespace moehub
