/// A quantity is a decimal, digits * 10^exponent, times a unit, factor * 10^exponent. Both are
/// integers, so reading and printing never round; only a double at the very end does, once.
#include "base/quantity.hpp"

#include "base/input_error.hpp"
#include "base/utf8.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace moehub {
namespace {

/// Some units are understood but never printed.
enum class Reading { and_printing, only };

struct Unit {
    std::string_view name;
    std::int64_t factor;
    int exponent;  ///< power of ten
    Reading reading = Reading::and_printing;
};

struct Dimension {
    std::string_view expected;    ///< for messages
    std::string_view base;        ///< what a value must be a whole number of, if it is an integer
    std::span<const Unit> units;  ///< ascending
};

constexpr Unit kTimeUnits[] = {
    {"ps", 1, 0},
    {"ns", 1, 3},
    {"us", 1, 6},
    {"µs", 1, 6, Reading::only},
    {"μs", 1, 6, Reading::only},
    {"ms", 1, 9},
    {"s", 1, 12},
};
constexpr Unit kByteUnits[] = {
    {"B", 1, 0},           {"KB", 1, 3},          {"KiB", 1LL << 10, 0},
    {"MB", 1, 6},          {"MiB", 1LL << 20, 0}, {"GB", 1, 9},
    {"GiB", 1LL << 30, 0}, {"TB", 1, 12},         {"TiB", 1LL << 40, 0},
};
constexpr Unit kRateUnits[] = {
    {"b/s", 125, -3, Reading::only}, {"B/s", 1, 0},
    {"Kb/s", 125, 0, Reading::only}, {"KB/s", 1, 3},
    {"Mb/s", 125, 3, Reading::only}, {"MB/s", 1, 6},
    {"Gb/s", 125, 6, Reading::only}, {"GB/s", 1, 9},
    {"Tb/s", 125, 9, Reading::only}, {"TB/s", 1, 12},
};
constexpr Unit kFlopUnits[] = {
    {"FLOP/s", 1, 0},  {"KFLOP/s", 1, 3},  {"MFLOP/s", 1, 6},
    {"GFLOP/s", 1, 9}, {"TFLOP/s", 1, 12}, {"PFLOP/s", 1, 15},
};
constexpr Unit kFrequencyUnits[] = {{"Hz", 1, 0}, {"kHz", 1, 3}, {"MHz", 1, 6}, {"GHz", 1, 9}};

constexpr Unit kNoUnit[] = {{"", 1, 0}};

constexpr Dimension kTime{"a time such as \"250 ns\" (ps, ns, us, ms, s)", "picoseconds",
                          kTimeUnits};
constexpr Dimension kBytes{"a size such as \"128 B\" (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB)",
                           "bytes", kByteUnits};
constexpr Dimension kRate{"a rate such as \"450 GB/s\" or \"400 Gb/s\" (B/s or b/s; K, M, G, T)",
                          "", kRateUnits};
constexpr Dimension kFlops{"a compute rate such as \"989 TFLOP/s\" (FLOP/s; K, M, G, T, P)", "",
                           kFlopUnits};
constexpr Dimension kFrequency{"a frequency such as \"1980 MHz\" (Hz, kHz, MHz, GHz)", "",
                               kFrequencyUnits};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// digits = digits * 10 + digit; false when that is no int64.
bool append_digit(std::int64_t& digits, char digit) {
    return !__builtin_mul_overflow(digits, std::int64_t{10}, &digits) &&
           !__builtin_add_overflow(digits, std::int64_t{digit - '0'}, &digits);
}

[[noreturn]] void fail(std::string_view expected, std::string_view found) {
    throw input_error("expected {}, found {}", expected, quoted(found));
}

/// The value in base units, still exact; nothing when it is no number with one of the units.
std::optional<Decimal> take_quantity(std::string_view text, std::span<const Unit> units) {
    std::string_view rest = trimmed(text);
    auto number = take_decimal(rest);
    if (!number) return std::nullopt;
    rest = trimmed(rest);
    for (const Unit& unit : units) {
        if (unit.name != rest) continue;
        if (__builtin_mul_overflow(number->digits, unit.factor, &number->digits))
            return std::nullopt;
        number->exponent += unit.exponent;
        return number;
    }
    return std::nullopt;
}

/// The largest decimal unit in which the value is 1 or more, or the largest binary unit that
/// divides it, whichever has fewer digits.
std::string print_quantity(const Decimal& value, std::span<const Unit> units) {
    std::string decimal, binary;
    std::string_view decimal_unit, binary_unit;
    for (const Unit& unit : units) {
        if (unit.reading == Reading::only) continue;
        if (unit.factor == 1) {
            const Decimal scaled{value.digits, value.exponent - unit.exponent};
            if (!decimal.empty() && std::abs(to_double(scaled).value_or(0)) < 1) continue;
            decimal = print_decimal(scaled);
            decimal_unit = unit.name;
        } else if (value.digits != 0 && value.digits % unit.factor == 0) {
            binary = print_decimal({value.digits / unit.factor, value.exponent});
            binary_unit = unit.name;
        }
    }
    if (!binary.empty() && binary.size() <= decimal.size())
        return fmt::format("{} {}", binary, binary_unit);
    return fmt::format("{} {}", decimal, decimal_unit);
}

std::int64_t parse_whole(std::string_view text, const Dimension& dimension) {
    const auto quantity = take_quantity(text, dimension.units);
    if (!quantity) fail(dimension.expected, text);
    const auto whole = to_integer(*quantity);
    if (!whole) fail(fmt::format("a whole number of {} below 9.2e18", dimension.base), text);
    return *whole;
}

double parse_real(std::string_view text, const Dimension& dimension) {
    const auto quantity = take_quantity(text, dimension.units);
    const auto value = quantity ? to_double(*quantity) : std::nullopt;
    if (!value) fail(dimension.expected, text);
    return *value;
}

}  // namespace

Ps parse_time(std::string_view text) {
    return parse_whole(text, kTime);
}
Bytes parse_bytes(std::string_view text) {
    return parse_whole(text, kBytes);
}
double parse_rate(std::string_view text) {
    return parse_real(text, kRate);
}
double parse_flops(std::string_view text) {
    return parse_real(text, kFlops);
}
double parse_frequency(std::string_view text) {
    return parse_real(text, kFrequency);
}
std::int64_t parse_count(std::string_view text) {
    const auto quantity = take_quantity(text, kNoUnit);
    const auto whole = quantity ? to_integer(*quantity) : std::nullopt;
    if (!whole) fail("a whole number", text);
    return *whole;
}
double parse_number(std::string_view text) {
    const auto quantity = take_quantity(text, kNoUnit);
    const auto value = quantity ? to_double(*quantity) : std::nullopt;
    if (!value) fail("a number", text);
    return *value;
}

std::string print_time(Ps value) {
    return print_quantity({value, 0}, kTime.units);
}
std::string print_bytes(Bytes value) {
    return print_quantity({value, 0}, kBytes.units);
}
std::string print_rate(double value) {
    return print_quantity(from_double(value), kRate.units);
}
std::string print_flops(double value) {
    return print_quantity(from_double(value), kFlops.units);
}
std::string print_frequency(double value) {
    return print_quantity(from_double(value), kFrequency.units);
}
std::string print_number(double value) {
    return print_decimal(from_double(value));
}

std::string with_byte_unit(std::string_view text) {
    const auto last = text.find_last_not_of(' ');
    constexpr std::string_view kLetters = "kKmMgGtT";
    if (last == std::string_view::npos || kLetters.find(text[last]) == std::string_view::npos)
        return std::string(text);
    std::string made(text.substr(0, last));
    made += static_cast<char>(text[last] & ~0x20);  // upper case
    return made + "iB";
}

std::string quoted(std::string_view text) {
    constexpr std::size_t kLongest = 60;
    return fmt::format("\"{}{}\"", printable(text.substr(0, kLongest)),
                       text.size() > kLongest ? "..." : "");
}

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

std::optional<double> take_number(std::string_view& text) {
    const std::optional<Decimal> decimal = take_decimal(text);
    return decimal ? to_double(*decimal) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

}  // namespace moehub
