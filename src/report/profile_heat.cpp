#include "report/profile_heat.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace moehub {
namespace {

// Fixed steps, not fitted to the data: maps of two profiles can be compared.
struct Shade {
    double from;  ///< times the mean
    std::string_view text;
};
constexpr std::array<Shade, 6> kShades{
    {{0, " "}, {0.25, "·"}, {0.5, "░"}, {1, "▒"}, {1.5, "▓"}, {2.5, "█"}}};

struct Colour {
    double from;
    int code;  ///< of the 256; dark to bright, blue over red to yellow
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

int step_for(int count, int most) {
    const int least = (count + most - 1) / most;
    for (int step = least; step < 2 * least; ++step)
        if (count % step == 0) return step;
    return least;
}

std::string repeated(std::string_view text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
}

/// Neighbours of one colour share its escape sequence.
std::string coloured_row(const HeatMap& map, int row, int cell) {
    std::string out;
    int current = -1;
    for (int column = 0; column < map.columns; ++column) {
        const int code = step_of(kColours, map.at(row, column)).code;
        if (code != current) out += fmt::format("\x1b[48;5;{}m", code);
        current = code;
        out += repeated(" ", cell);
    }
    return out + "\x1b[0m";
}

std::string shaded_row(const HeatMap& map, int row, int cell) {
    std::string out = "│";
    for (int column = 0; column < map.columns; ++column)
        out += repeated(step_of(kShades, map.at(row, column)).text, cell);
    return out + "│";
}

}  // namespace

HeatMap heat_map(const std::vector<double>& values, int columns, HeatSize most, MergeCells merge) {
    HeatMap map;
    if (columns < 1 || values.empty()) return map;
    const auto wide = static_cast<std::size_t>(columns);
    const int rows = static_cast<int>(values.size() / wide);
    map.row_step = step_for(rows, most.rows);
    map.column_step = step_for(columns, most.columns);
    map.rows = (rows + map.row_step - 1) / map.row_step;
    map.columns = (columns + map.column_step - 1) / map.column_step;
    map.values.assign(static_cast<std::size_t>(map.rows) * static_cast<std::size_t>(map.columns),
                      0.0);
    std::vector<int> gathered(map.values.size(), 0);
    for (std::size_t at = 0; at < values.size(); ++at) {
        const std::size_t cell = at / wide / static_cast<std::size_t>(map.row_step) *
                                     static_cast<std::size_t>(map.columns) +
                                 at % wide / static_cast<std::size_t>(map.column_step);
        ++gathered[cell];
        double& value = map.values[cell];
        value = merge == MergeCells::largest ? std::max(value, values[at])
                                             : value + (values[at] - value) / gathered[cell];
    }
    return map;
}

std::vector<double> relative_load(const ProfileSummary& summary) {
    std::vector<double> relative = summary.counts;
    for (std::size_t at = 0; at < relative.size(); ++at) {
        const double mean =
            summary.layers[at / static_cast<std::size_t>(summary.experts)].load.mean;
        relative[at] = mean > 0 ? relative[at] / mean : 0;
    }
    return relative;
}

std::string heat_text(const HeatMap& map, const std::vector<std::string>& labels, bool colour,
                      int cell) {
    std::size_t width = 0;
    for (const std::string& label : labels) width = std::max(width, display_width(label));
    std::string out;
    for (int row = 0; row < map.rows; ++row) {
        const std::string& label = labels[static_cast<std::size_t>(row)];
        out += std::string(width - display_width(label), ' ') + label + " " +
               (colour ? coloured_row(map, row, cell) : shaded_row(map, row, cell)) + "\n";
    }
    return out;
}

std::string heat_legend(bool colour) {
    std::string out;
    if (colour)
        for (const Colour& one : kColours)
            out += fmt::format("\x1b[48;5;{}m  \x1b[0m {} ", one.code, one.from);
    else
        for (const Shade& one : kShades) out += fmt::format("[{}] {}  ", one.text, one.from);
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
}

}  // namespace moehub
