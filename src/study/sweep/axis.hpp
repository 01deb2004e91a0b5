/// An axis of a sweep: a key and its values, or several keys whose values go together.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct SweepAxis {
    std::vector<std::string> keys;               ///< one; more: zipped
    std::vector<std::vector<std::string>> rows;  ///< a value for each key
    std::string where;                           ///< "my.toml:12", "--sweep"; for errors
};

inline constexpr std::size_t kMostAxisValues = 10000;

/// Values at equal distances or ratios, as text with their unit: "100 ns", "200 ns", … up to and
/// with `to`.
struct SweepRange {
    std::string from;
    std::string to;
    std::string step;    ///< one of the two is empty
    std::string factor;  ///< without a unit
};

/// Numbers are rounded to 12 digits, times to picoseconds, sizes to bytes. Throws InputError: units
/// that differ in kind, steps that lead nowhere, more than kMostAxisValues values.
std::vector<std::string> values_of(const SweepRange& range);

/// "100ns,250ns,1us", with semicolons where values hold commas; "1024..8192*2" and "0..1+0.25" are
/// ranges. Throws InputError.
std::vector<std::string> parse_axis_values(std::string_view text);

/// Values as positions on a scale; `unit` is empty for plain numbers.
struct AxisNumbers {
    std::vector<double> values;
    std::string unit;
};
/// Nothing where the values are not all numbers of one kind.
std::optional<AxisNumbers> numbers_of(const std::vector<std::string>& values);

/// Axes of one value list each, made one whose keys go together. Throws InputError when they are of
/// different lengths.
SweepAxis zipped(const std::vector<SweepAxis>& axes);

}  // namespace moehub
