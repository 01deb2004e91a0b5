/// Numbers with units, read and printed without loss: parse(print(x)) == x for every x.
/// Every parse function throws InputError with one line that says what was expected and found;
/// the caller adds which file and key.
#pragma once
#include <moehub/units.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace moehub {

Ps parse_time(std::string_view text);           ///< "250 ns"
Bytes parse_bytes(std::string_view text);       ///< "128 B", "64 KB" (1000), "60 MiB" (1024)
double parse_rate(std::string_view text);       ///< bytes/s: "450 GB/s", "400 Gb/s" (bits)
double parse_flops(std::string_view text);      ///< FLOP/s: "989 TFLOP/s"
double parse_frequency(std::string_view text);  ///< Hz: "1980 MHz"
std::int64_t parse_count(std::string_view text);
double parse_number(std::string_view text);

std::string print_time(Ps value);
std::string print_bytes(Bytes value);
std::string print_rate(double value);
std::string print_flops(double value);
std::string print_frequency(double value);
std::string print_number(double value);

/// The text with K, M, G or T alone at its end, in either case, as KiB … TiB: sizes as nccl-tests
/// takes them, "64K", "1m"; other texts as they are.
std::string with_byte_unit(std::string_view text);

/// Text of unknown origin made fit for one line of an error message: in quotes, control characters
/// and broken UTF-8 escaped, long text cut.
std::string quoted(std::string_view text);

/// An exact decimal number, digits * 10^exponent.
struct Decimal {
    std::int64_t digits = 0;
    int exponent = 0;  ///< power of ten
};

/// Reads the number at the front of `text` and removes it; nothing when there is none or it has
/// more digits than an int64 holds. No nan, no inf, no hexadecimal.
std::optional<Decimal> take_decimal(std::string_view& text);

/// Takes a decimal as the nearest double; nothing where to_double() has none, either.
std::optional<double> take_number(std::string_view& text);

/// The text without the spaces around it.
std::string_view trimmed(std::string_view text);

/// Nothing when the decimal is no whole number or no int64.
std::optional<std::int64_t> to_integer(Decimal number);

/// The nearest double; nothing when that is infinite or lost to zero.
std::optional<double> to_double(const Decimal& number);

/// The shortest decimal that reads back as `value`, which must be finite.
Decimal from_double(double value);

/// Prints a decimal in plain notation where that is short, otherwise with an exponent.
std::string print_decimal(Decimal number);

}  // namespace moehub
