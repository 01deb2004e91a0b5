// Dumps of SGLang's expert distribution recorder (python/sglang/srt/eplb/expert_distribution.py):
//   stat, stat_approx: logical_count [steps, layers, experts];
//   per_token: records, each with topk_ids_of_layer [layers, tokens, 8], ids of slots, −1 padded;
//   per_pass: records, each with global_physical_count [layers, slots];
// records come with last_physical_to_logical_map [layers, slots]. Layers are all of the model's.
#include "base/files.hpp"
#include "base/torch_file.hpp"
#include "place/profile/profile_readers.hpp"

#include <algorithm>

namespace moehub {
namespace {

using Kind = Pickle::Kind;
using Ref = Pickle::Ref;

constexpr const char* kCounts = "logical_count";
constexpr const char* kRecords = "records";
constexpr const char* kMap = "last_physical_to_logical_map";
constexpr const char* kTokens = "topk_ids_of_layer";
constexpr const char* kPass = "global_physical_count";
/// Keys of a record; SGLang writes about ten. Bounds the search for one.
constexpr std::size_t kMostKeys = 1000;

int size_in(std::int64_t size, int most, const std::string& what, const std::string& file) {
    if (size < 1 || size > most)
        fail_in(file, "{}: found a size of {}, allowed: 1 to {}", what, size, most);
    return static_cast<int>(size);
}

/// Expert of each slot, [layer][slot].
struct SlotMap {
    int layers = 0, slots = 0, experts = 0;
    std::vector<std::int64_t> expert;
    std::int64_t at(std::size_t layer, std::int64_t slot) const {
        return expert[layer * static_cast<std::size_t>(slots) + static_cast<std::size_t>(slot)];
    }
};

SlotMap slot_map_of(TorchFile& torch, Ref value, const std::string& file) {
    IntegerTensor tensor = torch.tensor(value, kMap);
    if (tensor.shape.size() != 2)
        fail_in(file, "{}: found shape ({}), allowed: (layers, slots)", kMap,
                fmt::join(tensor.shape, ", "));
    SlotMap map;
    map.layers = size_in(tensor.shape[0], kMostProfileLayers, kMap, file);
    map.slots = size_in(tensor.shape[1], kMostProfileExperts, kMap, file);
    map.expert = std::move(tensor.values);
    for (const std::int64_t expert : map.expert) {
        if (expert < 0 || expert >= kMostProfileExperts)
            fail_in(file, "{}: found expert {}, allowed: 0 to {}", kMap, expert,
                    kMostProfileExperts - 1);
        map.experts = std::max(map.experts, static_cast<int>(expert) + 1);
    }
    return map;
}

RecordedCounts counts_in(IntegerTensor tensor, const std::string& file) {
    const auto& shape = tensor.shape;
    if (shape.size() != 3 && shape.size() != 2)
        fail_in(file, "{}: found shape ({}), allowed: (steps, layers, experts)", kCounts,
                fmt::join(shape, ", "));
    RecordedCounts counts;
    counts.which.all = true;
    counts.steps = shape.size() == 2 ? 0 : size_in(shape[0], 1 << 30, kCounts, file);
    counts.layers = size_in(shape[shape.size() - 2], kMostProfileLayers, kCounts, file);
    counts.experts = size_in(shape.back(), kMostProfileExperts, kCounts, file);
    counts.counts.reserve(tensor.values.size());
    for (const std::int64_t count : tensor.values) {
        if (count < 0 || count > kMostCount)
            fail_in(file, "{}: found {}, allowed: 0 to 2^53", kCounts, count);
        counts.counts.push_back(static_cast<double>(count));
    }
    return counts;
}

/// Adds one forward pass's tokens, from slots to experts and from [layer][token] to [token][layer].
void add_tokens(const IntegerTensor& tensor, const SlotMap& map, const std::string& where,
                RecordedTokens& to) {
    const auto& shape = tensor.shape;
    if (shape.size() != 3 || shape[0] != map.layers || (to.top_k > 0 && shape[2] != to.top_k))
        fail_in(where,
                "{}: found shape ({}), allowed: ({}, tokens, top_k), top_k the same in all records",
                kTokens, fmt::join(shape, ", "), map.layers);
    if (tensor.values.empty()) return;
    to.top_k = size_in(shape[2], kMostProfileExperts, kTokens, where);
    const auto layers = at(shape[0]);
    const auto tokens = at(shape[1]);
    const auto top_k = at(shape[2]);
    std::vector<std::int32_t> ids(tensor.values.size());
    for (std::size_t from = 0; from < ids.size(); ++from) {
        const std::size_t layer = from / (tokens * top_k), token = from / top_k % tokens;
        const std::int64_t slot = tensor.values[from];
        if (slot < -1 || slot >= map.slots)
            fail_in(where, "token {}, layer {}: found slot {}, allowed: -1 to {}", token, layer,
                    slot, map.slots - 1);
        ids[(token * layers + layer) * top_k + from % top_k] =
            slot < 0 ? -1 : static_cast<std::int32_t>(map.at(layer, slot));
    }
    append(to, ids, where);
}

void add_pass(const IntegerTensor& tensor, const SlotMap& map, const std::string& where,
              RecordedCounts& to) {
    if (tensor.shape != std::vector<std::int64_t>{map.layers, map.slots})
        fail_in(where, "{}: found shape ({}), allowed: ({}, {})", kPass,
                fmt::join(tensor.shape, ", "), map.layers, map.slots);
    const std::size_t from = to.counts.size();
    const auto experts = static_cast<std::size_t>(to.experts);
    to.counts.resize(from + static_cast<std::size_t>(map.layers) * experts, 0);
    for (std::size_t at = 0; at < tensor.values.size(); ++at) {
        const std::int64_t count = tensor.values[at];
        if (count < 0 || count > kMostCount)
            fail_in(where, "{}: found {}, allowed: 0 to 2^53", kPass, count);
        const std::size_t layer = at / static_cast<std::size_t>(map.slots);
        to.counts[from + layer * experts + static_cast<std::size_t>(map.expert[at])] +=
            static_cast<double>(count);
    }
    ++to.steps;
}

Recording records_of(TorchFile& torch, std::span<const Ref> records, const SlotMap& map,
                     const std::string& file) {
    const Pickle& contents = torch.contents();
    const bool by_token = !records.empty() && contents.find(records[0], kTokens).has_value();
    const char* const key = by_token ? kTokens : kPass;
    RecordedTokens tokens{.layers = map.layers, .experts = map.experts, .which = {true, {}}};
    RecordedCounts passes{.layers = map.layers, .experts = map.experts, .which = {true, {}}};
    for (std::size_t index = 0; index < records.size(); ++index) {
        const std::string where = fmt::format("{}: record {}", file, index);
        if (contents.kind(records[index]) != Kind::dict ||
            contents.items(records[index]).size() > 2 * kMostKeys)
            fail_in(where, "found something else, allowed: a dictionary");
        const auto value = contents.find(records[index], key);
        if (!value) fail_in(where, "found no {}", key);
        const IntegerTensor tensor = torch.tensor(*value, key);
        if (by_token)
            add_tokens(tensor, map, where, tokens);
        else
            add_pass(tensor, map, where, passes);
    }
    if (tokens.tokens == 0 && passes.steps == 0) fail_in(file, "found no token in its records");
    if (by_token) return tokens;
    return passes;
}

}  // namespace

Recording parse_sglang_dump(std::string_view bytes, const ProfileOptions& options,
                            const std::string& file) {
    TorchFile torch = TorchFile::parse(bytes, file);
    const Pickle& contents = torch.contents();
    if (const auto counts = contents.find(contents.root(), kCounts))
        return counts_in(torch.tensor(*counts, kCounts), file);
    const auto records = contents.find(contents.root(), kRecords);
    const auto map = contents.find(contents.root(), kMap);
    if (!records || contents.kind(*records) != Kind::list || !map)
        fail_in(file,
                "found something else, allowed: a dictionary with {}, or with {} and {}, as "
                "SGLang's recorder writes",
                kCounts, kRecords, kMap);
    const SlotMap slots = slot_map_of(torch, *map, file);
    if (options.experts > 0 && options.experts != slots.experts)
        fail_in(file, "{}: found {} experts, allowed: {}, as asked for", kMap, slots.experts,
                options.experts);
    return records_of(torch, contents.items(*records), slots, file);
}

}  // namespace moehub
