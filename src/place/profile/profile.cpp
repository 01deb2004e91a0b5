#include "base/files.hpp"
#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "base/utf8.hpp"
#include "place/profile/profile_readers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace moehub {
namespace {

constexpr std::uint64_t kMostText = std::uint64_t{4} << 30;
constexpr std::uint64_t kMostBinary = NpyArray::kMostBytes;

void check_options(const ProfileOptions& options) {
    const auto check = [](std::string_view what, int value, int most) {
        if (value < 0 || value > most)
            throw input_error("{}: found {}, allowed: 0 (not said) to {}", what, value, most);
    };
    check("experts", options.experts, kMostProfileExperts);
    check("dense layers", options.dense_layers, kMostProfileLayers);
    check("layers", options.layers, kMostProfileLayers);
    check("top-k", options.top_k, kMostProfileExperts);
}

constexpr double kLargestWeight = 1e9;

/// Whether the text goes on as a path does, which may hold ":" and "@" itself: it is no suffix.
bool is_path(std::string_view text) {
    constexpr std::array<std::string_view, 6> kEndings = {".npy",  ".csv", ".jsonl",
                                                          ".json", ".pt",  ".safetensors"};
    return text.find('/') != std::string_view::npos ||
           std::any_of(kEndings.begin(), kEndings.end(),
                       [text](std::string_view ending) { return text.ends_with(ending); });
}

/// What follows the last `mark`, removed from `text` with it.
std::optional<std::string> take_suffix(std::string& text, char mark) {
    const auto at = text.rfind(mark);
    if (at == std::string::npos || is_path(std::string_view(text).substr(at + 1)))
        return std::nullopt;
    std::string suffix = text.substr(at + 1);
    text.resize(at);
    return suffix;
}

}  // namespace

Recording read_recording(const std::string& path, const ProfileOptions& options) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return read_folder(path, options);
    const std::string ending = std::filesystem::path(path).extension().string();
    if (ending == ".npy") return recording_of(NpyArray::read(path), options, path);
    if (ending == ".csv") return parse_counts_csv(read_bytes(path, kMostText), path);
    if (ending == ".jsonl" || ending == ".json")
        return parse_routed_answers(read_bytes(path, kMostText), options, path);
    if (ending == ".pt") return parse_sglang_dump(read_bytes(path, kMostBinary), options, path);
    if (ending == ".safetensors")
        return parse_trtllm_statistics(read_bytes(path, kMostBinary), path);
    fail_in(path,
            "found ending {}, allowed: .npy, .csv, .jsonl, .json, .pt, .safetensors, or a folder "
            "of dumps",
            moehub::quoted(ending));
}

Cut cut_of(const ProfileSource& source, std::int64_t all, std::string_view what) {
    const auto at = [all](double share) {
        return static_cast<std::int64_t>(std::floor(share * static_cast<double>(all)));
    };
    const Cut cut{at(source.from), at(source.to)};
    if (cut.from >= cut.to)
        fail_in(source.path, "part {}-{} of {} {} has none", print_number(source.from),
                print_number(source.to), all, what);
    return cut;
}

void number_layers(Profile& profile, const KeptLayers& layers, const ProfileSource& source,
                   const ProfileOptions& options) {
    const auto& which = layers.which;
    const bool said = which.all || !which.numbers.empty() ||
                      static_cast<int>(layers.kept.size()) < layers.recorded;
    const int shift = said ? 0 : options.dense_layers;
    profile.layer_numbers.clear();
    for (const int layer : layers.kept)
        profile.layer_numbers.push_back(which.numbers.empty() ? layer + shift
                                                              : which.numbers[at(layer)]);
    profile.model_layers =
        which.numbers.empty() ? layers.recorded + shift : which.numbers.back() + 1;
    profile.layers_said = said || options.dense_layers > 0;
    const int first = profile.layer_numbers.front();
    if (said && options.dense_layers > 0 && options.dense_layers != first)
        fail_in(source.path,
                "found {} layers before the first with experts, allowed: {}, as asked for", first,
                options.dense_layers);
}

Profile read_profile(const ProfileSource& source, const ProfileOptions& options) {
    return read_profile(std::vector{source}, options);
}

Profile read_profile(const std::vector<ProfileSource>& ranks, const ProfileOptions& options) {
    check_options(options);
    if (ranks.empty()) throw InputError("profiles: found nothing, allowed: FILE");
    ProfileSource whole = ranks.front();
    if (ranks.size() > 1) whole.text += fmt::format(" and {} more", ranks.size() - 1);
    std::vector<NamedRecording> dumps;
    try {
        for (const ProfileSource& rank : ranks) {
            if (rank.from != whole.from || rank.to != whole.to || rank.weight != whole.weight)
                fail_in(rank.text,
                        "found another part or weight, allowed: the same as of {} (dumps of one "
                        "recording)",
                        printable(ranks.front().text));
            dumps.push_back({rank.path, read_recording(rank.path, options)});
        }
        return std::visit(
            [&](auto&& recording) {
                return profile_of(std::forward<decltype(recording)>(recording), whole, options);
            },
            merged(std::move(dumps)));
    } catch (const std::bad_alloc&) {
        fail_in(whole.path, "does not fit in memory");
    }
}

void check_together(const std::vector<Profile>& profiles) {
    if (profiles.empty()) throw InputError("profiles: found nothing, allowed: FILE");
    const Profile& first = profiles.front();
    for (const Profile& other : profiles) {
        const auto compare = [&](std::string_view what, std::int64_t found, std::int64_t wanted) {
            if (found != wanted)
                fail_in(other.name, "found {} {}, allowed: {}, as in {}", found, what, wanted,
                        printable(first.name));
        };
        compare("layers", other.layers, first.layers);
        compare("experts", other.experts, first.experts);
        // Made by hand they may have no numbers.
        if (first.layer_numbers.empty() || other.layer_numbers.empty()) continue;
        if (first.layer_numbers != other.layer_numbers)
            fail_in(other.name,
                    "found layers {} to {} of the model, allowed: {} to {}, as in {} (does one "
                    "leave out dense layers?)",
                    other.layer_numbers.front(), other.layer_numbers.back(),
                    first.layer_numbers.front(), first.layer_numbers.back(), printable(first.name));
    }
}

ProfileSource parse_profile_source(const std::string& text) {
    const auto fail = [&text](std::string_view what, std::string_view found,
                              std::string_view allowed) {
        throw input_error("profile {}: {}: found {}, allowed: {}", moehub::quoted(text), what,
                          moehub::quoted(found), allowed);
    };
    ProfileSource source;
    source.text = text;
    source.path = text;
    if (const auto weight = take_suffix(source.path, '@')) {
        std::string_view rest = *weight;
        const auto value = take_number(rest);
        if (!value || !rest.empty() || *value <= 0 || *value > kLargestWeight)
            fail("weight", *weight, "a number above 0, at most 1e9");
        source.weight = *value;
    }
    if (const auto part = take_suffix(source.path, ':')) {
        std::string_view rest = *part;
        const auto from = take_number(rest);
        const bool dash = rest.starts_with('-');
        if (dash) rest.remove_prefix(1);
        const auto to = take_number(rest);
        if (!from || !dash || !to || !rest.empty() || *from < 0 || *to > 1 || *from >= *to)
            fail("part", *part, "FROM-TO, 0 to 1, FROM below TO (e.g. 0-0.5)");
        source.from = *from;
        source.to = *to;
    }
    if (source.path.empty()) fail("file", "", "FILE[:from-to][@weight]");
    return source;
}

}  // namespace moehub
