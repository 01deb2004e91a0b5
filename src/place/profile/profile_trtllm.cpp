// TensorRT-LLM with EXPERT_STATISTIC_ITER_RANGE writes, for every rank, a tensor of counts by
// expert under "<iteration>_<layer>", and meta_info.json beside them
// (tensorrt_llm/_torch/modules/fused_moe, examples/ep_load_balancer).
#include "base/file_bytes.hpp"
#include "base/quantity.hpp"
#include "base/safetensors.hpp"
#include "base/utf8.hpp"
#include "place/profile/profile_readers.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace moehub {
namespace {

using Key = std::pair<int, int>;  ///< iteration, layer
using Statistics = std::map<Key, std::vector<double>>;

/// A number without sign at the front of `text`, removed from it.
std::optional<int> take_index(std::string_view& text) {
    int value = 0;
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    return value;
}

Key key_of(const std::string& name, const std::string& file) {
    std::string_view rest = name;
    const auto iteration = take_index(rest);
    const bool dash = rest.starts_with('_');
    if (dash) rest.remove_prefix(1);
    const auto layer = take_index(rest);
    if (!iteration || !dash || !layer || !rest.empty() || *layer >= kMostProfileLayers)
        fail_in(file, fmt::format("found tensor {}, allowed: names as \"<iteration>_<layer>\"",
                                  moehub::quoted(name)));
    return {*iteration, *layer};
}

void add(const SafeTensor& tensor, const std::string& file, Statistics& all) {
    const auto counts = integers_of(tensor, file);
    if (tensor.shape.size() != 1 || counts.empty() || counts.size() > kMostProfileExperts)
        fail_in(file, fmt::format("{}: found shape ({}), allowed: (experts), 1 to {}",
                                  moehub::quoted(tensor.name), fmt::join(tensor.shape, ", "),
                                  kMostProfileExperts));
    auto& sum = all[key_of(tensor.name, file)];
    if (sum.empty()) sum.assign(counts.size(), 0);
    for (std::size_t expert = 0; expert < counts.size(); ++expert) {
        if (counts[expert] < 0 || counts[expert] > kMostCount)
            fail_in(file, fmt::format("{}: found count {}, allowed: 0 to 2^53",
                                      moehub::quoted(tensor.name), counts[expert]));
        if (expert < sum.size()) sum[expert] += static_cast<double>(counts[expert]);
    }
    const std::size_t experts = all.begin()->second.size();
    if (counts.size() != experts || sum.size() != experts)
        fail_in(file, fmt::format("{}: found counts of {} experts, others have {}",
                                  moehub::quoted(tensor.name), counts.size(), experts));
}

template <class Member>
std::vector<int> distinct(const Statistics& all, Member member) {
    std::vector<int> values;
    for (const auto& [key, counts] : all) values.push_back(key.*member);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

/// The experts that meta_info.json speaks of; 0 when it does not, or there is none.
std::int64_t experts_in_meta(const std::filesystem::path& path) {
    constexpr std::uint64_t kMostBytes = 1u << 20;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return 0;
    const auto meta = nlohmann::json::parse(read_bytes(path.string(), kMostBytes), nullptr, false);
    if (!meta.is_object()) fail_in(path.string(), "found something else, allowed: a JSON object");
    const auto found = meta.find("num_experts");
    if (found == meta.end()) return 0;
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() - 1 >= kMostProfileExperts)
        fail_in(path.string(),
                fmt::format("num_experts: found {}, allowed: 1 to {}",
                            moehub::quoted(found->is_number() ? found->dump() : "something else"),
                            kMostProfileExperts));
    return found->get<std::int64_t>();
}

/// The N of rank<N>.safetensors.
std::optional<int> rank_in(const std::string& name) {
    std::string_view rest = name;
    if (!rest.starts_with("rank")) return std::nullopt;
    rest.remove_prefix(4);
    const auto rank = take_index(rest);
    return rank && rest == ".safetensors" ? rank : std::nullopt;
}

}  // namespace

RecordedCounts parse_trtllm_statistics(const std::vector<StatisticsFile>& ranks) {
    const std::string& file = ranks.front().name;
    Statistics all;
    for (const StatisticsFile& rank : ranks)
        for (const SafeTensor& tensor : parse_safetensors(rank.bytes, rank.name))
            add(tensor, rank.name, all);
    if (all.empty()) fail_in(file, "found no tensor, allowed: counts by expert");
    const auto iterations = distinct(all, &Key::first), layers = distinct(all, &Key::second);
    if (all.size() != iterations.size() * layers.size())
        for (const int iteration : iterations)
            for (const int layer : layers)
                if (!all.contains({iteration, layer}))
                    fail_in(file, fmt::format("iteration {} has no layer {}, others have",
                                              iteration, layer));
    RecordedCounts counts;
    counts.steps = static_cast<int>(iterations.size());
    counts.layers = static_cast<int>(layers.size());
    counts.experts = static_cast<int>(all.begin()->second.size());
    counts.which.numbers = layers;
    for (const auto& [key, row] : all)
        counts.counts.insert(counts.counts.end(), row.begin(), row.end());
    return counts;
}

RecordedCounts read_trtllm_folder(const std::string& path) {
    std::error_code error;
    std::map<int, std::filesystem::path> files;  // by rank, so that errors are always the same
    for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error))
        if (const auto rank = rank_in(entry->path().filename().string()))
            files[*rank] = entry->path();
    if (error) fail_in(path, "cannot be read: " + error.message());
    if (files.empty())
        fail_in(path,
                "found a folder without rank<N>.safetensors, allowed: TensorRT-LLM's expert "
                "statistics");
    std::vector<StatisticsFile> ranks;
    for (const auto& [rank, file] : files)
        ranks.push_back({file.string(), read_bytes(file.string(), NpyArray::kMostBytes)});
    RecordedCounts counts = parse_trtllm_statistics(ranks);
    const std::int64_t experts = experts_in_meta(std::filesystem::path(path) / "meta_info.json");
    if (experts > 0 && experts != counts.experts)
        fail_in(path, fmt::format("found counts of {} experts, meta_info.json speaks of {}",
                                  counts.experts, experts));
    return counts;
}

}  // namespace moehub
