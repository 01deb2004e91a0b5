#include "model/routing_limits.hpp"

#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"

#include <moehub/routing.hpp>

#include <cmath>
#include <limits>

namespace moehub {
namespace {

void check_number(std::string_view what, double value, double most) {
    if (std::isfinite(value) && value >= 0 && value <= most) return;
    throw input_error("routing: {}: found {}, allowed: 0 to {}", what,
                      std::isfinite(value) ? print_number(value) : "no number", print_number(most));
}

void check_size(const Model& model, std::string_view what, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return;
    throw input_error("routing{}{}: {}: found {}, allowed: 1 to {}",
                      model.name.empty() ? "" : " of ", printable(model.name), what, value, most);
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
        throw input_error(
            "routing: expert_groups: found {}, allowed: a divisor of {} "
            "experts",
            model.expert_groups, model.experts);
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
    throw input_error("{}: found {} tokens, {} layers and top_k {}, allowed: at most {} in product",
                      where, tokens, layers, top_k, kMostRows);
}

namespace {

void check_token(const Routing& routing, int layer, std::int64_t token,
                 std::vector<std::int64_t>& last) {
    const auto chosen = routing.chosen_by(layer, token);
    const auto weights = routing.weights_of(layer, token);
    const std::int64_t number = layer * routing.tokens + token;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (chosen[i] >= routing.experts || last[chosen[i]] == number) {
            throw input_error(
                "routing: token {} of layer {}: found expert {}{}, allowed are {} "
                "different ones of 0 to {}",
                token, layer, chosen[i], chosen[i] < routing.experts ? " twice" : "", routing.top_k,
                routing.experts - 1);
        }
        last[chosen[i]] = number;
        if (!(weights[i] > 0) || !std::isfinite(weights[i])) {
            throw input_error(
                "routing: token {} of layer {}: found weight {}, allowed "
                "are positive numbers",
                token, layer, weights[i]);
        }
    }
}

}  // namespace

void check(const Routing& routing) {
    if (routing.experts < 1 || routing.top_k < 1 || routing.layers < 1 || routing.tokens < 1) {
        throw input_error(
            "routing: found {} experts, top-{}, {} layers, {} tokens, allowed 1 and "
            "more of each",
            routing.experts, routing.top_k, routing.layers, routing.tokens);
    }
    const auto size = static_cast<std::size_t>(routing.layers * routing.tokens * routing.top_k);
    if (routing.chosen.size() != size || routing.weights.size() != size) {
        throw input_error("routing: found {} choices and {} weights, allowed {} of each",
                          routing.chosen.size(), routing.weights.size(), size);
    }
    std::vector<std::int64_t> last(static_cast<std::size_t>(routing.experts), -1);
    for (int layer = 0; layer < routing.layers; ++layer) {
        for (std::int64_t token = 0; token < routing.tokens; ++token) {
            check_token(routing, layer, token, last);
        }
    }
}

}  // namespace moehub
