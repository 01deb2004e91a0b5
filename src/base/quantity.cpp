/// A quantity is a decimal, digits * 10^exponent, times a unit, factor * 10^exponent. Both are
/// integers, so reading and printing never round; only a double at the very end does, once.
#include "base/quantity.hpp"

#include "base/decimal.hpp"
#include "base/input_error.hpp"
#include "base/utf8.hpp"

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
    int exponent;  ///< of ten
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

[[noreturn]] void fail(std::string_view expected, std::string_view found) {
    throw input_error("expected {}, found {}", expected, quoted(found));
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
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

std::string quoted(std::string_view text) {
    constexpr std::size_t kLongest = 60;
    return fmt::format("\"{}{}\"", printable(text.substr(0, kLongest)),
                       text.size() > kLongest ? "..." : "");
}

}  // namespace moehub
