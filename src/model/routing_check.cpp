#include <moehub/error.hpp>
#include <moehub/routing.hpp>

#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

void check_token(const Routing& routing, int layer, std::int64_t token,
                 std::vector<std::int64_t>& last) {
    const auto chosen = routing.chosen_by(layer, token);
    const auto weights = routing.weights_of(layer, token);
    const std::int64_t number = layer * routing.tokens + token;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (chosen[i] >= routing.experts || last[chosen[i]] == number) {
            throw InputError(
                fmt::format("routing: token {} of layer {}: found expert {}{}, allowed are {} "
                            "different ones of 0 to {}",
                            token, layer, chosen[i], chosen[i] < routing.experts ? " twice" : "",
                            routing.top_k, routing.experts - 1));
        }
        last[chosen[i]] = number;
        if (!(weights[i] > 0) || !std::isfinite(weights[i])) {
            throw InputError(
                fmt::format("routing: token {} of layer {}: found weight {}, allowed "
                            "are positive numbers",
                            token, layer, weights[i]));
        }
    }
}

}  // namespace

void check(const Routing& routing) {
    if (routing.experts < 1 || routing.top_k < 1 || routing.layers < 1 || routing.tokens < 1) {
        throw InputError(
            fmt::format("routing: found {} experts, top-{}, {} layers, {} tokens, allowed 1 and "
                        "more of each",
                        routing.experts, routing.top_k, routing.layers, routing.tokens));
    }
    const auto size = static_cast<std::size_t>(routing.layers * routing.tokens * routing.top_k);
    if (routing.chosen.size() != size || routing.weights.size() != size) {
        throw InputError(fmt::format("routing: found {} choices and {} weights, allowed {} of each",
                                     routing.chosen.size(), routing.weights.size(), size));
    }
    std::vector<std::int64_t> last(static_cast<std::size_t>(routing.experts), -1);
    for (int layer = 0; layer < routing.layers; ++layer) {
        for (std::int64_t token = 0; token < routing.tokens; ++token) {
            check_token(routing, layer, token, last);
        }
    }
}

}  // namespace moehub
