// Maps of numbers for the terminal.
#include "base/utf8.hpp"
#include "report/chart.hpp"
#include "report/text_style.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kMostColumns = 96;
constexpr std::size_t kFewestColumns = 8;
constexpr std::size_t kMostRows = 64;

// Fixed steps, not fitted to the data: maps of two answers can be compared.
struct Shade {
    double from;
    std::string_view text;
};
constexpr std::array<Shade, 6> kShades{
    {{0, " "}, {0.25, "·"}, {0.5, "░"}, {1, "▒"}, {1.5, "▓"}, {2.5, "█"}}};

struct Colour {
    double from;
    int code;  ///< one of 256 colours; dark to bright, blue over red to yellow
};
constexpr std::array<Colour, 12> kColours{{{0, 233},
                                           {0.1, 17},
                                           {0.25, 54},
                                           {0.5, 90},
                                           {0.75, 126},
                                           {1, 161},
                                           {1.25, 196},
                                           {1.5, 202},
                                           {2, 208},
                                           {2.5, 214},
                                           {3, 220},
                                           {4, 229}}};

template <class Steps>
const auto& step_of(const Steps& steps, double value) {
    std::size_t found = 0;
    while (found + 1 < steps.size() && value >= steps[found + 1].from) ++found;
    return steps[found];
}

/// Neighbours of one colour share its escape sequence.
std::string coloured(const double* values, std::size_t count) {
    std::string out;
    int current = -1;
    for (std::size_t i = 0; i < count; ++i) {
        const int code = step_of(kColours, values[i]).code;
        if (code != current) out += fmt::format("\x1b[48;5;{}m", code);
        current = code;
        out += " ";
    }
    return out + "\x1b[0m";
}

std::string shaded(const double* values, std::size_t count) {
    std::string out = "│";
    for (std::size_t i = 0; i < count; ++i) out += step_of(kShades, values[i]).text;
    return out + "│";
}

std::string legend(bool colour) {
    std::string out;
    if (colour)
        for (const Colour& one : kColours)
            out += fmt::format("\x1b[48;5;{}m  \x1b[0m {} ", one.code, one.from);
    else
        for (const Shade& one : kShades) out += fmt::format("[{}] {} ", one.text, one.from);
    return out;
}

/// What of a whole one row or column stands for.
std::string step_words(const std::string& what, std::size_t step) {
    return step == 1 ? "" : fmt::format("; the largest of {} {}s each", step, what);
}

}  // namespace

std::string heat_text(const HeatChart& whole, const TextStyle& style) {
    if (!whole.in_terminals || whole.layers.empty() || whole.columns.empty()) return "";
    std::size_t labels = 0;
    for (const std::string& row : whole.rows) labels = std::max(labels, display_width(row));
    const auto width = static_cast<std::size_t>(std::max(style.width, 0));
    const std::size_t room = width > labels + 5 ? width - labels - 5 : 0;  // "12 … │…│"
    const HeatChart chart =
        merged(whole, kMostRows, std::clamp(room, kFewestColumns, kMostColumns));
    std::string out = printable(chart.title) + step_words(chart.column_title, chart.column_step) +
                      step_words(chart.row_title, chart.row_step) + "\n";
    const std::size_t count = chart.columns.size();
    for (std::size_t row = 0; row < chart.rows.size(); ++row) {
        const std::string label = printable(whole.rows[row * chart.row_step / whole.row_step]);
        const double* const values = chart.layers.front().values.data() + row * count;
        out += std::string(labels - std::min(labels, display_width(label)), ' ') + label + " " +
               (style.colour ? coloured(values, count) : shaded(values, count)) + "\n";
    }
    return out + legend(style.colour) + printable(chart.unit) + "\n";
}

}  // namespace moehub
