// From ids as they were recorded, [token][layer][choice], to a profile's, [layer][token][choice].
#include "base/files.hpp"
#include "base/input_error.hpp"
#include "base/utf8.hpp"
#include "model/routing_limits.hpp"
#include "place/profile/profile_readers.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace moehub {
namespace {

constexpr std::uint16_t kNobody = Profile::kNobody;

/// Copies one token's ids; false when one of them is out of range, negative ones included.
template <class Value>
bool copy_plain(const NpyValues<Value>& values, std::size_t from, std::span<std::uint16_t> to,
                int experts, int& largest) {
    // Narrow numbers are compared as 32 bits wide, which compilers turn into vectors.
    using Wide = std::conditional_t<sizeof(Value) == 8, std::uint64_t, std::uint32_t>;
    Wide most = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
        const auto id = static_cast<Wide>(values[from + i]);
        most = std::max(most, id);
        to[i] = static_cast<std::uint16_t>(id);
    }
    if (most >= static_cast<Wide>(experts)) return false;
    largest = std::max(largest, static_cast<int>(most));
    return true;
}

/// Where a token stands in its file, for errors.
struct TokenSource {
    const std::string& where;
    std::size_t token, layer;
    bool guessed;
    [[noreturn]] void fail(std::string_view what) const {
        throw input_error("{}: token {}, layer {}: {}{}", printable(where), token, layer, what,
                          guessed ? " (if these are counts: --profile-kind counts)" : "");
    }
};

/// Copies one token's ids of one layer; returns how many there are before nobody.
template <class Value>
std::size_t copy_padded(const NpyValues<Value>& values, std::size_t from,
                        std::span<std::uint16_t> to, int experts, const TokenSource& source) {
    std::size_t chosen = 0;
    for (std::size_t choice = 0; choice < to.size(); ++choice) {
        const Value value = values[from + choice];
        const bool nobody = std::is_signed_v<Value> && value == static_cast<Value>(-1);
        if (!nobody && static_cast<std::uint64_t>(value) >= static_cast<std::uint64_t>(experts))
            source.fail(fmt::format("found expert {}, allowed: 0 to {}", +value, experts - 1));
        if (!nobody && chosen < choice)
            source.fail(fmt::format("found expert {} after -1, allowed: -1 only after all experts",
                                    +value));
        to[choice] = nobody ? kNobody : static_cast<std::uint16_t>(value);
        if (!nobody) ++chosen;
    }
    return chosen;
}

/// A layer's rows of all tokens: is somebody chosen in it, and by other than zeros?
std::vector<int> layers_with_experts(const RecordedTokens& recording) {
    const auto layers = at(recording.layers);
    const auto top_k = at(recording.top_k);
    std::vector<int> open(layers), kept;
    for (std::size_t layer = 0; layer < layers; ++layer) open[layer] = static_cast<int>(layer);
    const auto has_expert = [&](std::size_t token, int layer) {
        const auto* row = recording.ids.data() + (token * layers + at(layer)) * top_k;
        return std::any_of(row, row + top_k, [top_k](std::uint16_t id) {
            return id != kNobody && (id != 0 || top_k == 1);
        });
    };
    for (std::size_t token = 0; token < at(recording.tokens); ++token) {
        if (open.empty()) break;
        std::erase_if(open, [&](int layer) {
            if (!has_expert(token, layer)) return false;
            kept.push_back(layer);
            return true;
        });
    }
    std::sort(kept.begin(), kept.end());
    return kept;
}

/// Slots that some token uses: SGLang's recorder always writes eight.
int used_slots(const RecordedTokens& recording) {
    if (!recording.has_nobody) return recording.top_k;
    const auto top_k = at(recording.top_k);
    std::size_t used = 0;
    for (std::size_t row = 0; row < recording.ids.size() && used < top_k; row += top_k)
        while (used < top_k && recording.ids[row + used] != kNobody) ++used;
    return static_cast<int>(used);
}

/// [token][layer][choice] to [layer][token][choice], a block of tokens at a time so that what is
/// read and written stays in the cache.
void transpose(const RecordedTokens& from, const std::vector<int>& layers, const Cut& cut,
               Profile& to) {
    constexpr std::int64_t kBlock = 64;
    const auto row = at(from.top_k);
    const auto token_size = at(from.layers) * row;
    const auto choices = at(to.top_k);
    for (std::int64_t first = cut.from; first < cut.to; first += kBlock) {
        const std::int64_t last = std::min(first + kBlock, cut.to);
        for (std::size_t layer = 0; layer < layers.size(); ++layer) {
            const auto* source = from.ids.data() + at(first) * token_size + at(layers[layer]) * row;
            auto* target =
                to.chosen.data() + (layer * at(to.tokens) + at(first - cut.from)) * choices;
            for (std::int64_t token = first; token < last; ++token) {
                std::memcpy(target, source, choices * sizeof *source);
                source += token_size;
                target += choices;
            }
        }
    }
}

/// `first` names the first token: where it stands in the file, and whether ids were guessed.
void check_distinct(const Profile& profile, const TokenSource& first) {
    std::vector<std::int64_t> named_by;  // [expert] the token that named it last
    for (int layer = 0; layer < profile.layers; ++layer) {
        named_by.assign(at(profile.experts), -1);
        for (std::int64_t token = 0; token < profile.tokens; ++token)
            for (const std::uint16_t expert : profile.chosen_by(layer, token)) {
                if (expert == kNobody) break;
                if (std::exchange(named_by[expert], token) == token)
                    TokenSource{first.where, first.token + at(token),
                                at(profile.layer_numbers[at(layer)]), first.guessed}
                        .fail(fmt::format("found expert {} twice, allowed: once", expert));
            }
    }
}

}  // namespace

template <class Value>
void append(RecordedTokens& to, const NpyValues<Value>& values, const std::string& where) {
    const auto layers = at(to.layers);
    const auto top_k = at(to.top_k);
    const std::size_t tokens = values.size() / (layers * top_k);
    check_rows(printable(where), to.tokens + static_cast<std::int64_t>(tokens), to.layers,
               to.top_k);
    const int experts = to.experts > 0 ? to.experts : kMostProfileExperts;
    std::size_t end = to.ids.size();
    to.ids.resize(end + values.size());
    for (std::size_t token = 0; token < tokens; ++token) {
        const std::size_t from = token * layers * top_k;
        const auto all = std::span(to.ids).subspan(end, layers * top_k);
        bool somebody = copy_plain(values, from, all, experts, to.largest);
        if (!somebody) {
            to.has_nobody = true;  // or a number that is not allowed
            for (std::size_t layer = 0; layer < layers; ++layer) {
                const auto row = all.subspan(layer * top_k, top_k);
                const std::size_t chosen =
                    copy_padded(values, from + layer * top_k, row, experts,
                                TokenSource{where, token, layer, to.guessed});
                for (const auto id : row.first(chosen)) to.largest = std::max<int>(to.largest, id);
                somebody = somebody || chosen > 0;
            }
        }
        if (somebody) end += layers * top_k;
    }
    to.ids.resize(end);
    to.tokens = static_cast<std::int64_t>(end / (layers * top_k));
}

template void append(RecordedTokens&, const NpyValues<std::uint8_t>&, const std::string&);
template void append(RecordedTokens&, const NpyValues<std::uint16_t>&, const std::string&);
template void append(RecordedTokens&, const NpyValues<std::uint32_t>&, const std::string&);
template void append(RecordedTokens&, const NpyValues<std::uint64_t>&, const std::string&);
template void append(RecordedTokens&, const NpyValues<std::int8_t>&, const std::string&);
template void append(RecordedTokens&, const NpyValues<std::int16_t>&, const std::string&);
template void append(RecordedTokens&, const NpyValues<std::int32_t>&, const std::string&);
template void append(RecordedTokens&, const NpyValues<std::int64_t>&, const std::string&);

Profile profile_of(RecordedTokens recording, const ProfileSource& source,
                   const ProfileOptions& options) {
    const std::vector<int> kept = layers_with_experts(recording);
    if (kept.empty()) fail_in(source.path, "found no token that chose an expert");
    const Cut cut = cut_of(source, recording.tokens, "tokens");
    Profile profile;
    profile.name = source.text;
    profile.weight = source.weight;
    profile.layers = static_cast<int>(kept.size());
    profile.experts = recording.experts > 0 ? recording.experts : recording.largest + 1;
    profile.top_k = used_slots(recording);
    profile.tokens = cut.to - cut.from;
    number_layers(profile, {kept, recording.layers, recording.which}, source, options);
    profile.chosen.resize(kept.size() * at(profile.tokens) * at(profile.top_k));
    transpose(recording, kept, cut, profile);
    const TokenSource first{source.path, at(cut.from), 0, recording.guessed};
    recording = {};
    check_distinct(profile, first);
    count_choices(profile);
    return profile;
}

}  // namespace moehub
