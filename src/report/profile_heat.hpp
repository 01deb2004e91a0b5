/// Maps of numbers, rows × columns: made small enough to be seen, and drawn in the terminal.
#pragma once
#include <moehub/profile_summary.hpp>

#include <string>
#include <vector>

namespace moehub {

struct HeatMap {
    int rows = 0;
    int columns = 0;
    int row_step = 1;            ///< so many rows of the original in one
    int column_step = 1;         ///< likewise; the last may have fewer
    std::vector<double> values;  ///< [row][column]

    double at(int row, int column) const {
        return values[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                      static_cast<std::size_t>(column)];
    }
};

/// What stands for several cells in one.
enum class MergeCells { largest, mean };
struct HeatSize {
    int rows;
    int columns;
};
/// At most that large; steps that divide evenly where there are such.
HeatMap heat_map(const std::vector<double>& values, int columns, HeatSize most,
                 MergeCells merge = MergeCells::largest);

/// Rows of experts over their layer's mean, [layer][expert]; 0 in layers without rows.
std::vector<double> relative_load(const ProfileSummary& summary);

/// Lines of shaded blocks, or of coloured cells, `cell` columns wide each; labels in front of rows.
std::string heat_text(const HeatMap& map, const std::vector<std::string>& labels, bool colour,
                      int cell = 1);
/// What the shades mean; "times the mean" follows it.
std::string heat_legend(bool colour);

}  // namespace moehub
