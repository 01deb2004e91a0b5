#include "report/number.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Scale {
    double size;
    std::string_view name;
};

/// The largest unit that the value, once rounded, fills.
template <std::size_t N>
std::string in_unit(double value, const std::array<Scale, N>& units) {
    std::size_t pick = 0;
    while (pick + 1 < N && std::abs(value) >= 0.9995 * units[pick + 1].size) ++pick;
    return fmt::format("{} {}", significant(value / units[pick].size), units[pick].name);
}

/// Commas between thousands of the digits before the point.
std::string with_commas(std::string_view text) {
    const auto point = std::min(text.find('.'), text.size());
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool after_digit = i > 0 && text[i - 1] >= '0' && text[i - 1] <= '9';
        if (after_digit && i < point && (point - i) % 3 == 0) out += ',';
        out += text[i];
    }
    return out;
}

}  // namespace

std::string significant(double value) {
    if (!std::isfinite(value)) return fmt::format("{}", value);
    if (value == 0) return "0";
    if (std::abs(value) >= 1e15) return fmt::format("{:.3g}", value);
    // Rounding to three digits first, so that 9.996 takes the digits of 10.0.
    const std::string rounded = fmt::format("{:.2e}", value);
    const int magnitude = std::atoi(rounded.c_str() + rounded.find('e') + 1);
    const int decimals = std::clamp(2 - magnitude, 0, 12);
    return with_commas(fmt::format("{:.{}f}", value, decimals));
}

std::string grouped(std::int64_t value) {
    return with_commas(fmt::format("{}", value));
}

std::string several(std::int64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string fixed_point(double value, int digits) {
    return with_commas(fmt::format("{:.{}f}", value, digits));
}

std::string tenths(double value) {
    return fixed_point(value, 1);
}

std::string percent(double fraction, bool signed_) {
    const double value = fraction * 100;
    return with_commas(signed_ ? fmt::format("{:+.1f}", value) : fmt::format("{:.1f}", value)) +
           " %";
}

std::string duration(double seconds) {
    constexpr std::array<Scale, 4> kUnits{{{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}}};
    return in_unit(seconds, kUnits);
}

std::string byte_size(double bytes) {
    constexpr std::array<Scale, 6> kUnits{
        {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}, {1e15, "PB"}}};
    return in_unit(bytes, kUnits);
}

}  // namespace moehub
