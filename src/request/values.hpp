/// Values of options, read from what was typed; every mistake gets one line that names the option,
/// what was found and what is allowed (InputError).
#pragma once
#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <moehub/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {

struct Range {
    std::int64_t least;
    std::int64_t most;
};

/// A whole number within the range.
std::int64_t count_of(std::string_view option, const std::string& text, Range allowed);

/// A number from 0 to `most`; `allowed` says so in words.
double number_of(std::string_view option, const std::string& text, double most,
                 std::string_view allowed);

/// Bytes, at least one. As nccl-tests takes them, too: no unit means bytes; K, M, G and T alone
/// mean KiB … TiB.
Bytes size_of(std::string_view option, const std::string& text);

/// A time with its unit: "10 us".
Ps time_of(std::string_view option, const std::string& text);

/// "a, b" as {"a", "b"}; nothing between two commas is a name, an empty one.
std::vector<std::string> listed(const std::string& text);

/// The value that a name stands for.
template <class Value>
Value named(std::string_view option, const std::string& name, std::optional<Value> value,
            const std::vector<std::string_view>& names) {
    if (value) return *value;
    const std::vector<std::string> known(names.begin(), names.end());
    throw InputError(fmt::format("{}: found {}, allowed: {}{}", option, moehub::quoted(name),
                                 fmt::join(names, ", "), did_you_mean(name, known)));
}

}  // namespace moehub
