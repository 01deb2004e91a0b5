// One rank's tensors, put in order: iteration after iteration, layer after layer.
#include "base/quantity.hpp"
#include "place/profile/profile_trtllm.hpp"

#include <moehub/error.hpp>

#include <map>

#include <fmt/format.h>

namespace moehub {
namespace {

using Ordered = std::map<StatisticsKey, const SafeTensor*>;

/// All of `dimensions`, by iteration and layer.
Ordered ordered(const std::vector<SafeTensor>& tensors, std::size_t dimensions,
                std::string_view allowed, const std::string& file) {
    Ordered all;
    for (const SafeTensor& tensor : tensors) {
        const StatisticsKey key = statistics_key(tensor.name, file);
        if (tensor.shape.size() != dimensions || tensor.shape.back() < 1 ||
            tensor.shape.back() > kMostProfileExperts)
            fail_in(file, fmt::format("{}: found shape ({}), allowed: {}, 1 to {}",
                                      moehub::quoted(tensor.name), fmt::join(tensor.shape, ", "),
                                      allowed, kMostProfileExperts));
        all[key] = &tensor;
    }
    std::vector<StatisticsKey> keys;
    for (const auto& [key, tensor] : all) keys.push_back(key);
    check_no_holes(keys, file);
    return all;
}

/// Of the first iteration, and so of all.
std::vector<int> layers_of(const Ordered& all) {
    std::vector<int> layers;
    for (const auto& [key, tensor] : all)
        if (key.iteration == all.begin()->first.iteration) layers.push_back(key.layer);
    return layers;
}

/// `found` says what the tensor has, as "counts of 4 experts".
void check_same_size(const SafeTensor& tensor, const SafeTensor& first, const std::string& found,
                     const std::string& file) {
    if (tensor.shape.back() != first.shape.back())
        fail_in(file, fmt::format("{}: found {}, others have {}", moehub::quoted(tensor.name),
                                  found, first.shape.back()));
}

}  // namespace

RecordedCounts trtllm_counts(const std::vector<SafeTensor>& tensors, const std::string& file) {
    const Ordered all = ordered(tensors, 1, "(experts)", file);
    RecordedCounts counts;
    counts.which.numbers = layers_of(all);
    counts.layers = static_cast<int>(counts.which.numbers.size());
    counts.steps = static_cast<int>(all.size()) / counts.layers;
    counts.experts = static_cast<int>(all.begin()->second->shape.back());
    for (const auto& [key, tensor] : all) {
        check_same_size(*tensor, *all.begin()->second,
                        fmt::format("counts of {} experts", tensor->shape.back()), file);
        for (const std::int64_t count : integers_of(*tensor, file)) {
            if (count < 0 || count > kMostCount)
                fail_in(file, fmt::format("{}: found count {}, allowed: 0 to 2^53",
                                          moehub::quoted(tensor->name), count));
            counts.counts.push_back(static_cast<double>(count));
        }
    }
    return counts;
}

RecordedTokens trtllm_tokens(const std::vector<SafeTensor>& tensors, const std::string& file) {
    const Ordered all = ordered(tensors, 2, "(tokens, top_k)", file);
    RecordedTokens to;
    to.which.numbers = layers_of(all);
    to.layers = static_cast<int>(to.which.numbers.size());
    to.top_k = static_cast<int>(all.begin()->second->shape.back());
    const auto layers = to.which.numbers.size();
    const auto top_k = static_cast<std::size_t>(to.top_k);
    std::vector<std::int64_t> ids;  // of an iteration, [token][layer][choice]
    std::size_t layer = 0;
    const SafeTensor* first = nullptr;  // of the iteration
    for (const auto& [key, tensor] : all) {
        check_same_size(*tensor, *all.begin()->second,
                        fmt::format("{} experts a token", tensor->shape.back()), file);
        if (layer == 0) first = tensor;
        if (tensor->shape.front() != first->shape.front())
            fail_in(file, fmt::format("{}: found {} tokens, allowed: {}, as in {}",
                                      moehub::quoted(tensor->name), tensor->shape.front(),
                                      first->shape.front(), moehub::quoted(first->name)));
        const std::vector<std::int64_t> values = integers_of(*tensor, file);
        ids.resize(values.size() * layers);
        for (std::size_t at = 0; at < values.size(); ++at)
            ids[(at / top_k * layers + layer) * top_k + at % top_k] = values[at];
        if (++layer < layers) continue;
        layer = 0;
        append(to,
               NpyValues<std::int64_t>(reinterpret_cast<const std::byte*>(ids.data()), ids.size()),
               fmt::format("{}: iteration {}", file, key.iteration));
    }
    if (to.tokens == 0) fail_in(file, "found no token");
    return to;
}

}  // namespace moehub
