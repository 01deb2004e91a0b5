// TensorRT-LLM with EXPERT_STATISTIC_ITER_RANGE writes, for every rank, tensors under
// "<iteration>_<layer>", and meta_info.json beside them (tensorrt_llm/_torch/modules/fused_moe,
// examples/wide_ep/ep_load_balancer):
//     rank<N>.safetensors                         how often each expert was chosen
//     rank<N>_raw.safetensors, or
//     token_selected_experts_rank<N>.safetensors  every token's experts, (tokens, k)
#include "base/files.hpp"
#include "base/quantity.hpp"
#include "base/safetensors.hpp"
#include "place/profile/profile_readers.hpp"

#include <charconv>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

namespace moehub {
namespace {

namespace fs = std::filesystem;

/// The iteration and layer of a tensor, named "<iteration>_<layer>".
struct StatisticsKey {
    int iteration = 0;
    int layer = 0;
    auto operator<=>(const StatisticsKey&) const = default;
};

/// A number without sign at the front of `text`, removed from it.
std::optional<int> take_index(std::string_view& text) {
    int value = 0;
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc()) return std::nullopt;
    text.remove_prefix(at(read.ptr - text.data()));
    return value;
}

/// The N of a file of rank N, "<before>N<after>".
std::optional<int> rank_in(std::string_view name, std::string_view before, std::string_view after) {
    if (!name.starts_with(before)) return std::nullopt;
    name.remove_prefix(before.size());
    const auto rank = take_index(name);
    return rank && name == after ? rank : std::nullopt;
}

/// Files by rank: those of every token's experts where there are any, as they say more than counts.
std::map<int, fs::path> ranks_of(const std::vector<fs::path>& files) {
    std::map<int, fs::path> counts, tokens;
    for (const fs::path& file : files) {
        const std::string name = file.filename().string();
        if (const auto rank = rank_in(name, "rank", ".safetensors")) counts[*rank] = file;
        if (const auto rank = rank_in(name, "rank", "_raw.safetensors")) tokens[*rank] = file;
        if (const auto rank = rank_in(name, "token_selected_experts_rank", ".safetensors"))
            tokens[*rank] = file;
    }
    return tokens.empty() ? counts : tokens;
}

/// The experts that meta_info.json speaks of; 0 when it speaks of none, or there is none.
int experts_in_meta(const fs::path& path) {
    constexpr std::uint64_t kMostBytes = 1u << 20;
    std::error_code error;
    if (!fs::exists(path, error)) return 0;
    const auto meta = nlohmann::json::parse(read_bytes(path.string(), kMostBytes), nullptr, false);
    if (!meta.is_object()) fail_in(path.string(), "found something else, allowed: a JSON object");
    const auto found = meta.find("num_experts");
    if (found == meta.end()) return 0;
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() - 1 >= kMostProfileExperts)
        fail_in(path.string(),
                fmt::format("num_experts: found {}, allowed: 1 to {}",
                            moehub::quoted(found->is_number() ? found->dump() : "something else"),
                            kMostProfileExperts));
    return found->get<int>();
}

StatisticsKey statistics_key(const std::string& name, const std::string& file) {
    std::string_view rest = name;
    const auto iteration = take_index(rest);
    const bool dash = rest.starts_with('_');
    if (dash) rest.remove_prefix(1);
    const auto layer = take_index(rest);
    if (!iteration || !dash || !layer || !rest.empty() || *layer >= kMostProfileLayers)
        fail_in(file, "found tensor {}, allowed: names as \"<iteration>_<layer>\"",
                moehub::quoted(name));
    return {*iteration, *layer};
}

using Ordered = std::map<StatisticsKey, const SafeTensor*>;

/// Throws InputError unless every iteration has all layers.
void check_no_holes(const Ordered& all, const std::string& file) {
    std::set<int> iterations, layers;
    for (const auto& [key, tensor] : all) {
        iterations.insert(key.iteration);
        layers.insert(key.layer);
    }
    for (const int iteration : iterations)
        for (const int layer : layers)
            if (!all.contains({iteration, layer}))
                fail_in(file, "iteration {} has no layer {}, others have", iteration, layer);
}

/// Tensors by iteration and layer, all of `dimensions` dimensions.
Ordered ordered(const std::vector<SafeTensor>& tensors, std::size_t dimensions,
                std::string_view allowed, const std::string& file) {
    Ordered all;
    for (const SafeTensor& tensor : tensors) {
        const StatisticsKey key = statistics_key(tensor.name, file);
        if (tensor.shape.size() != dimensions || tensor.shape.back() < 1 ||
            tensor.shape.back() > kMostProfileExperts)
            fail_in(file, "{}: found shape ({}), allowed: {}, 1 to {}", moehub::quoted(tensor.name),
                    fmt::join(tensor.shape, ", "), allowed, kMostProfileExperts);
        all[key] = &tensor;
    }
    check_no_holes(all, file);
    return all;
}

/// The layers of the first iteration, which are those of all.
std::vector<int> layers_of(const Ordered& all) {
    std::vector<int> layers;
    for (const auto& [key, tensor] : all)
        if (key.iteration == all.begin()->first.iteration) layers.push_back(key.layer);
    return layers;
}

/// Checks sizes; `found` says what the tensor has, as "counts of 4 experts".
void check_same_size(const SafeTensor& tensor, const SafeTensor& first, const std::string& found,
                     const std::string& file) {
    if (tensor.shape.back() != first.shape.back())
        fail_in(file, "{}: found {}, others have {}", moehub::quoted(tensor.name), found,
                first.shape.back());
}

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
                fail_in(file, "{}: found count {}, allowed: 0 to 2^53",
                        moehub::quoted(tensor->name), count);
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
    std::vector<std::int64_t> ids;  // ids of the iteration at hand, [token][layer][choice]
    std::size_t layer = 0;
    const SafeTensor* first = nullptr;  // tensor of the iteration
    for (const auto& [key, tensor] : all) {
        check_same_size(*tensor, *all.begin()->second,
                        fmt::format("{} experts a token", tensor->shape.back()), file);
        if (layer == 0) first = tensor;
        if (tensor->shape.front() != first->shape.front())
            fail_in(file, "{}: found {} tokens, allowed: {}, as in {}",
                    moehub::quoted(tensor->name), tensor->shape.front(), first->shape.front(),
                    moehub::quoted(first->name));
        const std::vector<std::int64_t> values = integers_of(*tensor, file);
        ids.resize(values.size() * layers);
        for (std::size_t at = 0; at < values.size(); ++at)
            ids[(at / top_k * layers + layer) * top_k + at % top_k] = values[at];
        if (++layer < layers) continue;
        layer = 0;
        append(to, ids, fmt::format("{}: iteration {}", file, key.iteration));
    }
    if (to.tokens == 0) fail_in(file, "found no token");
    return to;
}

}  // namespace

Recording parse_trtllm_statistics(std::string_view bytes, const std::string& file) {
    const std::vector<SafeTensor> tensors = parse_safetensors(bytes, file);
    if (tensors.empty()) fail_in(file, "found no tensor, allowed: counts by expert");
    if (tensors.front().shape.size() == 2) return trtllm_tokens(tensors, file);
    return trtllm_counts(tensors, file);
}

bool is_trtllm_folder(const std::vector<fs::path>& files) {
    return !ranks_of(files).empty();
}

Recording read_trtllm_folder(const std::string& path, const std::vector<fs::path>& files) {
    std::vector<NamedRecording> dumps;
    for (const auto& [rank, file] : ranks_of(files)) {
        const std::string name = file.string();
        dumps.push_back(
            {name, parse_trtllm_statistics(read_bytes(name, NpyArray::kMostBytes), name)});
    }
    Recording recording = merged(std::move(dumps));
    const int experts = experts_in_meta(fs::path(path) / "meta_info.json");
    if (auto* tokens = std::get_if<RecordedTokens>(&recording)) {
        if (experts > 0 && tokens->largest >= experts)
            fail_in(path, "found expert {}, meta_info.json speaks of {}", tokens->largest, experts);
        tokens->experts = experts;
        return recording;
    }
    const int counted = std::get<RecordedCounts>(recording).experts;
    if (experts > 0 && experts != counted)
        fail_in(path, "found counts of {} experts, meta_info.json speaks of {}", counted, experts);
    return recording;
}

}  // namespace moehub
