/// "718e9±5%": a number of parameters, then nothing (5 %), or ± and a share or another number.
#include "base/decimal.hpp"
#include "base/quantity.hpp"

#include <moehub/error.hpp>
#include <moehub/shape_search.hpp>

#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kUsualShare = 0.05;
constexpr double kFewest = 1e3;
constexpr double kMost = 1e16;

void skip_blanks(std::string_view& text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

bool take(std::string_view& text, std::string_view what) {
    if (!text.starts_with(what)) return false;
    text.remove_prefix(what.size());
    return true;
}

double take_suffix(std::string_view& text) {
    skip_blanks(text);
    if (take(text, "M")) return 1e6;
    if (take(text, "B")) return 1e9;
    if (take(text, "T")) return 1e12;
    return 1;
}

std::optional<double> take_number(std::string_view& text) {
    skip_blanks(text);
    const std::optional<Decimal> decimal = take_decimal(text);
    return decimal ? to_double(*decimal) : std::nullopt;
}

bool take_plus_minus(std::string_view& text) {
    skip_blanks(text);
    return take(text, "±") || take(text, "+-") || take(text, "+/-");
}

/// Behind the centre; nothing when it cannot be read.
std::optional<double> take_width(std::string_view& text, double centre) {
    skip_blanks(text);
    if (text.empty()) return kUsualShare * centre;
    if (!take_plus_minus(text)) return std::nullopt;
    const std::optional<double> number = take_number(text);
    if (!number || *number < 0) return std::nullopt;
    skip_blanks(text);
    const double width = take(text, "%") ? *number / 100 * centre : *number * take_suffix(text);
    return width < centre ? std::optional(width) : std::nullopt;
}

}  // namespace

bool ParameterWindow::contains(std::int64_t count) const {
    // The ends belong to it: a hair for what 5 % of a number lose in binary.
    return std::abs(static_cast<double>(count) - centre) <= width + 1e-12 * centre;
}

ParameterWindow parse_parameter_window(std::string_view text) {
    std::string_view rest = text;
    const std::optional<double> number = take_number(rest);
    if (number) {
        const double centre = *number * take_suffix(rest);
        const std::optional<double> width = take_width(rest, centre);
        skip_blanks(rest);
        if (width && rest.empty() && centre >= kFewest && centre <= kMost) return {centre, *width};
    }
    throw InputError(
        fmt::format("found {}, allowed: a number of parameters from 1e3 to 1e16 and less than it "
                    "to each side, such as \"718e9±5%\", \"718e9+-5%\" or \"718B±20B\"",
                    quoted(text)));
}

std::string to_text(const ParameterWindow& window) {
    const double centre = window.centre;
    const bool trillions = centre >= 1e12;
    const double unit = trillions ? 1e12 : centre >= 1e9 ? 1e9 : 1e6;
    const char* name = trillions ? "T" : centre >= 1e9 ? "B" : "M";
    return fmt::format("{:.4g} {} ± {:.3g} %", centre / unit, name, 100 * window.width / centre);
}

}  // namespace moehub
