#include "model/routing_trace.hpp"

#include "base/files.hpp"
#include "base/utf8.hpp"
#include "model/routing_limits.hpp"

#include <limits>
#include <utility>

namespace moehub {
namespace {

/// Sizes of the routing; its rows are still missing.
Routing sizes_of(const NpyArray& array, int experts, const std::string& file) {
    if (experts < 1 || experts > kMostExperts)
        fail_in(file, "experts: found {}, allowed: 1 to {}", experts, kMostExperts);
    const auto& shape = array.shape();
    const bool fits = shape.size() == 3 && shape[0] >= 1 && shape[0] <= kMostTokens &&
                      shape[1] >= 1 && shape[1] <= std::numeric_limits<int>::max() &&
                      shape[2] >= 1 && shape[2] <= experts;
    if (!fits)
        fail_in(file,
                "found shape ({}), allowed: (tokens, layers, top_k), tokens 1 to "
                "{}, layers 1 or more, top_k 1 to the {} experts",
                fmt::join(shape, ", "), kMostTokens, experts);
    check_rows(printable(file), shape[0], shape[1], shape[2]);
    Routing routing;
    routing.experts = experts;
    routing.tokens = shape[0];
    routing.layers = static_cast<int>(shape[1]);
    routing.top_k = static_cast<int>(shape[2]);
    return routing;
}

/// From [token][layer][choice] to [layer][token][choice], each number checked.
template <class Value>
std::vector<std::uint16_t> rows_of(const NpyValues<Value>& values, const Routing& routing,
                                   const std::string& file) {
    const auto layers = static_cast<std::size_t>(routing.layers);
    const auto tokens = static_cast<std::size_t>(routing.tokens);
    const auto top_k = static_cast<std::size_t>(routing.top_k);
    const auto fail_at = [&](std::size_t token, std::size_t layer, std::string_view what) {
        fail_in(file, "token {}, layer {}: {}", token, layer, what);
    };
    std::vector<std::uint16_t> rows(layers * tokens * top_k);
    // [expert] the (token, layer) that named it last, from 1: finds repeats without a search.
    std::vector<std::uint64_t> named_by(static_cast<std::size_t>(routing.experts), 0);
    for (std::size_t token = 0, from = 0; token < tokens; ++token) {
        for (std::size_t layer = 0; layer < layers; ++layer) {
            const std::uint64_t namer = token * layers + layer + 1;
            std::uint16_t* to = rows.data() + (layer * tokens + token) * top_k;
            for (std::size_t choice = 0; choice < top_k; ++choice, ++from) {
                const Value value = values[from];
                // A negative number becomes one far too large.
                const auto expert = static_cast<std::uint64_t>(value);
                if (expert >= named_by.size())
                    fail_at(token, layer,
                            fmt::format("found expert {}, allowed: 0 to {}", +value,
                                        routing.experts - 1));
                if (std::exchange(named_by[expert], namer) == namer)
                    fail_at(token, layer,
                            fmt::format("found expert {} twice, allowed: once", expert));
                to[choice] = static_cast<std::uint16_t>(expert);
            }
        }
    }
    return rows;
}

}  // namespace

Routing routing_of(const NpyArray& array, int experts, const std::string& file) {
    Routing routing = sizes_of(array, experts, file);
    try {
        array.visit([&](const auto& values) { routing.chosen = rows_of(values, routing, file); });
        routing.weights =
            std::vector<float>(array.size(), 1.0f / static_cast<float>(routing.top_k));
    } catch (const std::bad_alloc&) {
        fail_in(file, "does not fit in memory");
    }
    return routing;
}

Routing read_routing(const std::string& path, int experts) {
    return routing_of(NpyArray::read(path), experts, path);
}

}  // namespace moehub
