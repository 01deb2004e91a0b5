/// Numbers as people read them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace moehub {

/// Three or more significant digits without exponent: 0.0123, 1.23, 45.6, 789, 12,345.
std::string significant(double value);

/// A whole number with thousands separated: 1,234,567.
std::string grouped(std::int64_t value);

/// "1 GPU", "8 GPUs".
std::string several(std::int64_t count, std::string_view what);

/// So many digits after the point and thousands separated: 1,234.5.
std::string fixed_point(double value, int digits);
std::string tenths(double value);

/// A fraction as percent with one digit: 0.0123 is "1.2 %". `signed_` writes the plus as well.
std::string percent(double fraction, bool signed_ = false);

/// Picked unit, three digits: "812 ns", "37.5 µs", "2.69 ms", "1.2 s". From seconds.
std::string duration(double seconds);

/// Picked decimal unit: "640 B", "1.07 GB".
std::string byte_size(double bytes);

}  // namespace moehub
