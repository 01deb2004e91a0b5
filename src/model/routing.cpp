#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "model/routing_limits.hpp"

#include <moehub/routing.hpp>

#include <algorithm>
#include <array>

namespace moehub {
namespace {

/// Names by position in RoutingSpec::Shares.
const std::array<std::string, 5> kNames = {"uniform", "normal", "zipf", "lognormal", "balanced"};

[[noreturn]] void fail(std::string_view text, std::string_view why) {
    throw input_error(
        "routing {}: {}, allowed: uniform, normal:STD, zipf:EXPONENT, lognormal:SIGMA, each with "
        ",transition:PROBABILITY or without; balanced",
        quoted(text), why);
}

/// "name:value" or "name"; `value` is empty without one.
struct Part {
    std::string name;
    std::string value;
    bool has_value = false;
};

Part part_of(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return {std::string(text), "", false};
    return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1)), true};
}

bool has_spread(RoutingSpec::Shares shares) {
    return shares != RoutingSpec::Shares::uniform && shares != RoutingSpec::Shares::balanced;
}

double number_of(const Part& part, std::string_view text) {
    if (!part.has_value)
        fail(text, fmt::format("{} needs a number, as in {}:0.5", part.name, part.name));
    try {
        return parse_number(part.value);
    } catch (const InputError&) {
        fail(text, fmt::format("{} needs a number, found {}", part.name, quoted(part.value)));
    }
}

/// The first `size` values, from the start again where there are fewer.
template <class Value>
SharedArray<Value> repeated(const SharedArray<Value>& values, std::size_t size) {
    if (size <= values.size()) return values.part(0, size);
    std::vector<Value> all;
    all.reserve(size);
    while (all.size() < size) {
        const auto block = static_cast<std::ptrdiff_t>(std::min(size - all.size(), values.size()));
        all.insert(all.end(), values.begin(), values.begin() + block);
    }
    return all;
}

}  // namespace

RoutingSpec parse_routing(const std::string& text) {
    RoutingSpec spec;
    const auto comma = text.find(',');
    const Part shares = part_of(std::string_view(text).substr(0, comma));
    const auto name = std::find(kNames.begin(), kNames.end(), shares.name);
    if (name == kNames.end())
        fail(text, fmt::format("unknown shares {}{}", quoted(shares.name),
                               did_you_mean(shares.name, kNames)));
    spec.shares = static_cast<RoutingSpec::Shares>(name - kNames.begin());
    if (has_spread(spec.shares))
        spec.spread = number_of(shares, text);
    else if (shares.has_value)
        fail(text, shares.name + " takes no number");

    if (comma != std::string::npos) {
        const Part transition = part_of(std::string_view(text).substr(comma + 1));
        if (transition.name != "transition")
            fail(text, fmt::format("unknown option {}", quoted(transition.name)));
        spec.transition = number_of(transition, text);
    }
    check_spec(spec);
    return spec;
}

std::string to_string(const RoutingSpec& spec) {
    std::string text = kNames[static_cast<std::size_t>(spec.shares)];
    if (has_spread(spec.shares)) text += fmt::format(":{}", print_number(spec.spread));
    if (spec.transition != 0) text += fmt::format(",transition:{}", print_number(spec.transition));
    return text;
}

Routing one_layer(const Routing& routing, int layer, std::int64_t tokens) {
    if (layer < 0 || layer >= routing.layers)
        throw input_error("routing: layer: found {}, allowed: 0 to {}", layer, routing.layers - 1);
    if (tokens < 1 || tokens > kMostTokens)
        throw input_error("routing: tokens: found {}, allowed: 1 to {}", tokens, kMostTokens);
    if (routing.tokens < 1) throw InputError("routing: tokens: found 0, allowed: 1 or more");
    check_rows("routing", tokens, 1, routing.top_k);

    Routing one{routing.experts, routing.top_k, 1, tokens, {}, {}};
    const auto row = static_cast<std::size_t>(routing.top_k);
    const auto there = static_cast<std::size_t>(routing.tokens) * row;
    const auto first = static_cast<std::size_t>(layer) * there;
    one.chosen =
        repeated(routing.chosen.part(first, there), static_cast<std::size_t>(tokens) * row);
    one.weights =
        repeated(routing.weights.part(first, there), static_cast<std::size_t>(tokens) * row);
    return one;
}

}  // namespace moehub
