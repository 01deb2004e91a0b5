/// Charts as plain values. Pages draw them (src/report/web); of bars that are divided into parts
/// terminals show the parts as marks, of maps that ask for it shades.
#pragma once
#include "base/json.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace moehub {

/// Values of one name over the chart's categories; nothing where there is none.
struct ChartSeries {
    std::string name;
    std::vector<std::optional<double>> values;
    std::string mark = {};  ///< in terminals, one column wide
};

/// A bar per category, or several side by side or stacked.
struct BarChart {
    std::string title;
    std::string unit;
    std::vector<std::string> categories;
    std::vector<ChartSeries> series;
    bool stacked = false;
    bool systems = false;  ///< categories are systems, each with its colour where bars are single

    /// Terminals show bars whose parts have marks.
    bool has_marks() const { return !series.empty() && !series.front().mark.empty(); }
};

struct ChartPoint {
    double x = 0;
    double y = 0;
    std::string label = {};  ///< what it is, under the mouse
    std::string mark = {};   ///< beside it
};
struct LineSeries {
    std::string name;
    std::vector<ChartPoint> points;
    bool guide = false;  ///< what others are measured by: a thin line
};
/// The one of that name, which is added at the end where there is none.
template <class Series>
Series& series_named(std::vector<Series>& all, const std::string& name) {
    for (Series& one : all)
        if (one.name == name) return one;
    return all.emplace_back(Series{name, {}});
}
struct ChartAxis {
    std::string title;
    bool logarithmic = false;
    bool from_zero = true;
    std::vector<std::string> labels = {};  ///< names of values that are no numbers; x is a place
};
struct LineChart {
    std::string title;
    ChartAxis x;
    ChartAxis y;
    std::vector<LineSeries> series;
    bool joined = true;  ///< by lines; false: points alone
};

/// A map of rows × columns; of several layers the reader picks one.
struct HeatLayer {
    std::string name;
    std::vector<double> values;  ///< [row][column]
};
struct HeatChart {
    std::string title;
    std::string unit;
    std::string row_title;
    std::string column_title;
    std::vector<std::string> rows;
    std::vector<std::string> columns;
    std::vector<HeatLayer> layers;
    double cap = 0;               ///< the darkest colour's value, and of all beyond; 0: the largest
    std::size_t row_step = 1;     ///< neighbours that became one row, labelled by the first
    std::size_t column_step = 1;  ///< neighbours that became one column
    bool in_terminals = false;    ///< values are over a mean, and terminals show the first layer
};

/// What stands for several cells in one.
enum class MergeCells { largest, mean };
/// A map with at most so many rows and columns: as many neighbours become one as divides evenly,
/// where that can be.
HeatChart merged(HeatChart chart, std::size_t most_rows, std::size_t most_columns,
                 MergeCells how = MergeCells::largest);

/// What is busy over time, in bins of equal width from 0 on; times in µs.
struct TimelineSeries {
    std::string name;
    double bin = 0;
    std::vector<double> values;
};
/// When something went on: beginnings and ends in turn, in µs.
struct TimelineLane {
    std::string name;
    std::vector<double> spans;
};
struct TimelineGpu {
    std::string name;
    std::vector<TimelineLane> lanes;
    std::vector<TimelineSeries> sms;    ///< SMs that each kernel has
    std::vector<TimelineSeries> links;  ///< % of the time busy, by direction
    std::vector<TimelineSeries> units;  ///< packets/µs of the hub's units
};
struct TimelineSystem {
    std::string name;
    double end = 0;
    std::vector<TimelineGpu> gpus;
    std::vector<TimelineSeries> switches;  ///< packets/µs of switches' units, all together
};
struct TimelineChart {
    std::string title;
    std::vector<TimelineSystem> systems;
};

using Chart = std::variant<BarChart, LineChart, HeatChart, TimelineChart>;

/// The chart as src/report/web reads it.
Json chart_json(const Chart& chart);
std::string_view title_of(const Chart& chart);
/// Kind, title and the main numbers in a sentence or two, for those who do not see it.
std::string chart_words(const Chart& chart);

}  // namespace moehub
