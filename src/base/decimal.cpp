#include "base/decimal.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// digits = digits * 10 + digit; false when that is no int64.
bool append_digit(std::int64_t& digits, char digit) {
    return !__builtin_mul_overflow(digits, std::int64_t{10}, &digits) &&
           !__builtin_add_overflow(digits, std::int64_t{digit - '0'}, &digits);
}

}  // namespace

std::optional<Decimal> take_decimal(std::string_view& text) {
    constexpr int kLargestExponent = 400;  // beyond any double
    Decimal number;
    std::size_t i = 0;
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) ++i;
    bool any = false, point = false;
    int decimals = 0;  // digits after the point
    for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        any = true;
        if (point) ++decimals;
        if (!append_digit(number.digits, text[i])) return std::nullopt;
    }
    if (!any) return std::nullopt;
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        const char* from = text.data() + i + 1;
        const char* end = text.data() + text.size();
        if (from != end && *from == '+') ++from;
        const auto read = std::from_chars(from, end, number.exponent);
        if (read.ec != std::errc() || number.exponent > kLargestExponent ||
            number.exponent < -kLargestExponent)
            return std::nullopt;
        i = static_cast<std::size_t>(read.ptr - text.data());
    }
    number.exponent -= decimals;
    if (negative) number.digits = -number.digits;
    text.remove_prefix(i);
    return number;
}

std::optional<std::int64_t> to_integer(Decimal number) {
    if (number.digits == 0) return 0;
    for (; number.exponent > 0; --number.exponent)
        if (__builtin_mul_overflow(number.digits, std::int64_t{10}, &number.digits))
            return std::nullopt;
    for (; number.exponent < 0; ++number.exponent) {
        if (number.digits % 10 != 0) return std::nullopt;
        number.digits /= 10;
    }
    return number.digits;
}

std::optional<double> to_double(const Decimal& number) {
    const std::string text = fmt::format("{}e{}", number.digits, number.exponent);
    double value = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec != std::errc() || !std::isfinite(value)) return std::nullopt;
    return value;
}

Decimal from_double(double value) {
    char buffer[64];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
    std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
    return take_decimal(text).value_or(Decimal{});
}

std::string print_decimal(Decimal number) {
    if (number.digits == 0) return "0";
    for (; number.digits % 10 == 0; ++number.exponent) number.digits /= 10;
    const bool negative = number.digits < 0;
    std::string text = fmt::format("{}", number.digits).substr(negative ? 1 : 0);
    const int point = static_cast<int>(text.size()) + number.exponent;  // digits before it
    if (point > 18 || point < -6)
        text += fmt::format("e{}", number.exponent);
    else if (number.exponent >= 0)
        text.append(static_cast<std::size_t>(number.exponent), '0');
    else if (point > 0)
        text = fmt::format("{}.{}", text.substr(0, static_cast<std::size_t>(point)),
                           text.substr(static_cast<std::size_t>(point)));
    else
        text = fmt::format("0.{}{}", std::string(static_cast<std::size_t>(-point), '0'), text);
    return fmt::format("{}{}", negative ? "-" : "", text);
}

}  // namespace moehub
