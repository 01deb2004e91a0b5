/// An axis of a sweep: a key and its values, or several keys whose values go together.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct SweepAxis {
    std::vector<std::string> keys;               ///< one key, or several that are zipped
    std::vector<std::vector<std::string>> rows;  ///< a value for each key
    std::string where;                           ///< "my.toml:12", "--sweep"; for errors
};

inline constexpr std::size_t kMostAxisValues = 10000;

/// Values at equal distances or ratios, as text with their unit: "100 ns", "200 ns", … up to and
/// with `to`.
struct SweepRange {
    std::string from;
    std::string to;
    std::string step;    ///< distance; empty where there is a factor
    std::string factor;  ///< ratio, without a unit; empty where there is a step
};

/// A range's values: numbers rounded to 12 digits, times to picoseconds, sizes to bytes. Throws
/// InputError: units of different kinds, steps that lead nowhere, more than kMostAxisValues values.
std::vector<std::string> values_of(const SweepRange& range);

/// Values as "100ns,250ns,1us", with semicolons where they hold commas; "1024..8192*2" and
/// "0..1+0.25" are ranges. Throws InputError.
std::vector<std::string> parse_axis_values(std::string_view text);

/// Values as positions on a scale; `unit` is empty for plain numbers.
struct AxisNumbers {
    std::vector<double> values;
    std::string unit;
};
/// Values as numbers; none where they are not all numbers of one kind.
std::optional<AxisNumbers> numbers_of(const std::vector<std::string>& values);

/// Several axes as one whose keys go together. Throws InputError when they are of
/// different lengths.
SweepAxis zipped(const std::vector<SweepAxis>& axes);

}  // namespace moehub
