/// Exact decimal numbers, digits * 10^exponent, between text and int64 or double.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace moehub {

struct Decimal {
    std::int64_t digits = 0;
    int exponent = 0;  ///< of ten
};

/// Reads the number at the front of `text` and removes it; nothing when there is none or it has
/// more digits than an int64 holds. No nan, no inf, no hexadecimal.
std::optional<Decimal> take_decimal(std::string_view& text);

/// Nothing when the decimal is no whole number or no int64.
std::optional<std::int64_t> to_integer(Decimal number);

/// The nearest double; nothing when that is infinite or lost to zero.
std::optional<double> to_double(const Decimal& number);

/// The shortest decimal that reads back as `value`, which must be finite.
Decimal from_double(double value);

/// In plain notation where that is short, otherwise with an exponent.
std::string print_decimal(Decimal number);

}  // namespace moehub
