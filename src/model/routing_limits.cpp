#include "model/routing_limits.hpp"

#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace moehub {
namespace {

void check_number(std::string_view what, double value, double most) {
    if (std::isfinite(value) && value >= 0 && value <= most) return;
    throw InputError(fmt::format("routing: {}: found {}, allowed: 0 to {}", what,
                                 std::isfinite(value) ? print_number(value) : "no number",
                                 print_number(most)));
}

void check_size(const Model& model, std::string_view what, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return;
    throw InputError(fmt::format("routing{}{}: {}: found {}, allowed: 1 to {}",
                                 model.name.empty() ? "" : " of ", printable(model.name), what,
                                 value, most));
}

}  // namespace

void check_spec(const RoutingSpec& spec) {
    using Shares = RoutingSpec::Shares;
    switch (spec.shares) {
        case Shares::uniform:
            check_number("spread of uniform", spec.spread, 0);
            break;
        case Shares::normal:
            check_number("spread of normal", spec.spread, 1);
            break;
        case Shares::zipf:
            check_number("spread of zipf", spec.spread, 10);
            break;
        case Shares::lognormal:
            check_number("spread of lognormal", spec.spread, 10);
            break;
        case Shares::balanced:
            check_number("spread of balanced", spec.spread, 0);
            check_number("transition of balanced", spec.transition, 0);
            break;
    }
    check_number("transition", spec.transition, 1);
}

void check_sizes(const Model& model, std::int64_t tokens, int layers) {
    check_size(model, "experts", model.experts, kMostExperts);
    check_size(model, "top_k", model.top_k, model.experts);
    check_size(model, "expert_groups", model.expert_groups, model.experts);
    if (model.experts % model.expert_groups != 0)
        throw InputError(
            fmt::format("routing: expert_groups: found {}, allowed: a divisor of {} "
                        "experts",
                        model.expert_groups, model.experts));
    check_size(model, "top_groups", model.top_groups, model.expert_groups);
    check_size(model, "top_k within top_groups", model.top_k,
               std::int64_t{model.experts / model.expert_groups} * model.top_groups);
    check_size(model, "tokens", tokens, kMostTokens);
    check_size(model, "layers", layers, std::numeric_limits<int>::max());
    check_rows("routing", tokens, layers, model.top_k);
}

void check_rows(const std::string& where, std::int64_t tokens, std::int64_t layers,
                std::int64_t top_k) {
    std::int64_t rows = 0;
    if (!__builtin_mul_overflow(tokens, layers, &rows) &&
        !__builtin_mul_overflow(rows, top_k, &rows) && rows <= kMostRows)
        return;
    throw InputError(
        fmt::format("{}: found {} tokens, {} layers and top_k {}, allowed: at most {} in product",
                    where, tokens, layers, top_k, kMostRows));
}

}  // namespace moehub
