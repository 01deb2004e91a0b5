#include "study/sweep/axis.hpp"

#include "base/input_error.hpp"
#include "base/quantity.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

/// A kind of value: how it is read into its base unit and printed from it.
struct Scale {
    double (*parse)(std::string_view);
    std::string (*print)(double);
    std::string_view unit;  ///< unit in which pictures show the value
    double size;            ///< that unit in base units
};

const Scale kScales[] = {
    {parse_number, print_number, "", 1},
    {[](std::string_view text) { return static_cast<double>(parse_time(text)); },
     [](double value) { return print_time(std::llround(value)); }, "µs", 1e6},
    {[](std::string_view text) { return static_cast<double>(parse_bytes(with_byte_unit(text))); },
     [](double value) { return print_bytes(std::llround(value)); }, "B", 1},
    {parse_rate, print_rate, "GB/s", 1e9},
    {parse_flops, print_flops, "TFLOP/s", 1e12},
    {parse_frequency, print_frequency, "MHz", 1e6},
};

/// The first kind of value that the text can be read as.
const Scale& scale_of(const std::string& text) {
    for (const Scale& scale : kScales) {
        try {
            scale.parse(text);
            return scale;
        } catch (const InputError&) {
            // Another kind, then.
        }
    }
    throw input_error("expected a number, or one with a unit such as \"100 ns\", found {}",
                      moehub::quoted(text));
}

double parse_as(const Scale& scale, const std::string& text, const std::string& like) {
    try {
        return scale.parse(text);
    } catch (const InputError&) {
        throw input_error("found {} beside {}, allowed: units of one kind", moehub::quoted(text),
                          moehub::quoted(like));
    }
}

/// The value without the last bits in which 0.1 + 0.2 is not 0.3.
double rounded(double value) {
    const std::string text = fmt::format("{:.12g}", value);
    double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    return read;
}

double parse_factor(const std::string& text) {
    const double factor = parse_number(text);
    if (!(factor > 1))
        throw input_error("factor: found {}, allowed: above 1", moehub::quoted(text));
    return factor;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (true) {
        const std::size_t end = text.find(separator);
        parts.emplace_back(trimmed(text.substr(0, end)));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

}  // namespace

std::vector<std::string> values_of(const SweepRange& range) {
    if (range.step.empty() == range.factor.empty())
        throw InputError("a range has from, to and one of step and factor");
    const Scale& scale = scale_of(range.from);
    const double from = scale.parse(range.from);
    const double to = parse_as(scale, range.to, range.from);
    if (from > to)
        throw input_error("found from {} to {}, allowed: from the smaller on",
                          moehub::quoted(range.from), moehub::quoted(range.to));
    const double factor = range.factor.empty() ? 0 : parse_factor(range.factor);
    const double step = range.step.empty() ? 0 : parse_as(scale, range.step, range.from);
    if (factor > 0 && from <= 0)
        throw input_error("from: found {}, allowed: above 0 with a factor",
                          moehub::quoted(range.from));
    if (factor == 0 && !(step > 0))
        throw input_error("step: found {}, allowed: above 0", moehub::quoted(range.step));
    std::vector<std::string> values;
    double product = from;
    for (std::size_t i = 0;; ++i) {
        const double value = rounded(factor > 0 ? product : from + static_cast<double>(i) * step);
        if (value > rounded(to)) return values;
        if (values.size() == kMostAxisValues)
            throw input_error("more than {} values", kMostAxisValues);
        values.push_back(scale.print(value));
        product *= factor;
    }
}

std::vector<std::string> parse_axis_values(std::string_view text) {
    const std::size_t dots = text.find("..");
    // A path may hold two dots, too; a range has a number before them and a sign behind.
    const std::size_t sign =
        dots == std::string_view::npos ? std::string_view::npos : text.find_first_of("*+", dots);
    if (sign != std::string_view::npos && text.find_first_of(",;") == std::string_view::npos) {
        SweepRange range{std::string(trimmed(text.substr(0, dots))),
                         std::string(trimmed(text.substr(dots + 2, sign - dots - 2))), "", ""};
        (text[sign] == '*' ? range.factor : range.step) = trimmed(text.substr(sign + 1));
        return values_of(range);
    }
    const char separator = text.find(';') == std::string_view::npos ? ',' : ';';
    // "zipf:1,transition:0.5;" is one value, which holds a comma.
    if (separator == ';' && text.ends_with(separator)) text.remove_suffix(1);
    return split(text, separator);
}

std::optional<AxisNumbers> numbers_of(const std::vector<std::string>& values) {
    try {
        const Scale& scale = scale_of(values.at(0));
        AxisNumbers numbers{{}, std::string(scale.unit)};
        for (const std::string& value : values)
            numbers.values.push_back(scale.parse(value) / scale.size);
        return numbers;
    } catch (const InputError&) {
        return std::nullopt;
    }
}

SweepAxis zipped(const std::vector<SweepAxis>& axes) {
    SweepAxis made;
    for (const SweepAxis& axis : axes) {
        const SweepAxis& first = axes.front();
        if (axis.rows.size() != first.rows.size())
            throw input_error(
                "{}: {}: found {} values beside {} of {}, allowed: as many, they go together",
                axis.where, axis.keys.front(), axis.rows.size(), first.rows.size(),
                first.keys.front());
        made.keys.push_back(axis.keys.front());
        made.rows.resize(first.rows.size());
        for (std::size_t i = 0; i < made.rows.size(); ++i)
            made.rows[i].push_back(axis.rows[i].front());
        made.where = first.where;
    }
    return made;
}

}  // namespace moehub
