#include "report/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

namespace moehub {
namespace {

struct Unit {
    double size;
    std::string_view name;
};

/// The largest unit that the value, once rounded, fills.
template <std::size_t N>
std::string in_unit(double value, const std::array<Unit, N>& units) {
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

bool wants_colour(std::FILE* stream) {
    const char* const no_color = std::getenv("NO_COLOR");
    return (no_color == nullptr || *no_color == '\0') && isatty(fileno(stream)) != 0;
}

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

std::string tenths(double value) {
    return with_commas(fmt::format("{:.1f}", value));
}

std::string percent(double fraction, bool signed_) {
    const double value = fraction * 100;
    return with_commas(signed_ ? fmt::format("{:+.1f}", value) : fmt::format("{:.1f}", value)) +
           " %";
}

std::string duration(double seconds) {
    constexpr std::array<Unit, 4> kUnits{{{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}}};
    return in_unit(seconds, kUnits);
}

std::string byte_size(double bytes) {
    constexpr std::array<Unit, 6> kUnits{
        {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}, {1e15, "PB"}}};
    return in_unit(bytes, kUnits);
}

std::string bar(double fraction, int width) {
    constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double share = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
    const auto eighths = static_cast<std::size_t>(std::lround(share * 8 * std::max(width, 0)));
    std::string out;
    for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
    return out.append(kEighths[eighths % 8]);
}

}  // namespace moehub
