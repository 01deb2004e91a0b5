#include "base/decimal.hpp"
#include "base/quantity.hpp"

#include <moehub/error.hpp>
#include <moehub/profile.hpp>

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kLargestWeight = 1e9;

/// A path may hold ":" and "@" itself: what goes on as one does is no suffix.
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

std::optional<double> take_number(std::string_view& text) {
    const auto decimal = take_decimal(text);
    return decimal ? to_double(*decimal) : std::nullopt;
}

}  // namespace

ProfileSource parse_profile_source(const std::string& text) {
    const auto fail = [&text](std::string_view what, std::string_view found,
                              std::string_view allowed) {
        throw InputError(fmt::format("profile {}: {}: found {}, allowed: {}", moehub::quoted(text),
                                     what, moehub::quoted(found), allowed));
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
