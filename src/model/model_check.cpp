/// What must hold between the fields of a Model.
#include "model/records.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

/// Refuses fields by what was found and what other fields allow.
class Rules {
  public:
    explicit Rules(const Given& given) : given_(given) {}

    /// `why` follows the number allowed, as "with experts = 8 (my.toml:3)".
    void at_least(const std::string& key, int value, int least, const std::string& why) const {
        if (value < least)
            refuse(given_, key, fmt::format("found {}, allowed {} or more {}", value, least, why));
    }
    void at_most(const std::string& key, int value, const std::string& other, int most) const {
        if (value > most)
            refuse(given_, key,
                   fmt::format("found {}, allowed at most {}", value, with(other, most)));
    }
    void multiple(const std::string& key, int value, const std::string& other, int of) const {
        if (value % of != 0)
            refuse(given_, key,
                   fmt::format("found {}, allowed multiples of {}", value, with(other, of)));
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
    const bool mla = a.kind == Attention::Kind::mla;
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
        refuse(given, "top_k",
               fmt::format("found {}, allowed at most {}: the experts of {}", m.top_k, reach,
                           rules.with("top_groups", m.top_groups)));
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

void check(const Model& model) {
    Model copy = model;
    const Given given{model.name.empty() ? "model" : "model " + model.name};
    require_limits(fields_of(copy), given);
    check(model, given);
}

}  // namespace moehub
