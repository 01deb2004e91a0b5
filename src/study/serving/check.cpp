#include "study/serving/operators.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

[[noreturn]] void refuse(std::string_view what, int found, const std::string& allowed) {
    throw InputError(fmt::format("{}: found {}, allowed: {}", what, found, allowed));
}

void require_divides(std::string_view what, int by, std::string_view whole, int value) {
    if (value % by != 0) refuse(what, by, fmt::format("a divisor of {}, {}", whole, value));
}

void check_experts(const Model& model, const ServingLayout& layout) {
    if (layout.moe_tp * layout.moe_ep != layout.gpus())
        throw InputError(fmt::format(
            "layout: found moe_tp {} × moe_ep {}, allowed: as many GPUs as attention has, {} × {}",
            layout.moe_tp, layout.moe_ep, layout.attention_tp, layout.attention_dp));
    require_divides("moe_tp", layout.moe_tp, "the experts' width", model.expert_ffn);
    if (layout.moe_ep > model.experts)
        refuse("moe_ep", layout.moe_ep, fmt::format("at most the experts, {}", model.experts));
}

}  // namespace

void check(const ServingCase& what) {
    check(what.model);
    check(what.engine);
    const ServingLayout& layout = what.layout;
    const Model& model = what.model;
    for (const auto& [name, value] :
         {std::pair{"attention_tp", layout.attention_tp},
          std::pair{"attention_dp", layout.attention_dp}, std::pair{"moe_tp", layout.moe_tp},
          std::pair{"moe_ep", layout.moe_ep}})
        if (value < 1 || value > 65535) refuse(name, value, "1 to 65535");
    const int there = what.machine.gpus();
    if (static_cast<long>(layout.attention_tp) * layout.attention_dp > there)
        throw InputError(fmt::format("layout: found {} × {} GPUs, allowed: at most {}'s {}",
                                     layout.attention_tp, layout.attention_dp, what.machine.name,
                                     there));
    require_divides("attention_tp", layout.attention_tp, "the heads", model.attention.heads);
    const int kv_heads = model.attention.kv_heads;
    if (layout.attention_tp < kv_heads)
        require_divides("attention_tp", layout.attention_tp, "the key heads", kv_heads);
    if (model.dense_ffn > 0)
        require_divides("attention_tp", layout.attention_tp, "the FFN's width", model.dense_ffn);
    if (model.shared_experts > 0)
        require_divides("attention_tp", layout.attention_tp, "the shared experts' width",
                        model.shared_experts * model.shared_ffn);
    if (model.experts > 0) check_experts(model, layout);
    if (!(what.expert_skew >= 0 && what.expert_skew <= 10))
        throw InputError(fmt::format("expert_skew: found {}, allowed: 0 to 10", what.expert_skew));
}

}  // namespace moehub
