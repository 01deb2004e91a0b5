/// Report pages: one HTML file with sentences, tables and charts, which needs no network. A page is
/// described by plain values; src/report/web draws the charts. Text may hold anything: it is
/// escaped.
#pragma once
#include "report/table.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace moehub {

struct PageTable {
    std::string caption;
    std::vector<Table::Column> columns;
    std::vector<std::vector<std::string>> rows;
};

/// Values of one name over the chart's categories; nothing where there is none.
struct ChartSeries {
    std::string name;
    std::vector<std::optional<double>> values;
};

/// A bar per category, or several side by side or stacked.
struct BarChart {
    std::string title;
    std::string unit;
    std::vector<std::string> categories;
    std::vector<ChartSeries> series;
    bool stacked = false;
    bool systems = false;  ///< categories are systems, each with its colour where bars are single
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
struct ChartAxis {
    std::string title;
    bool logarithmic = false;
    bool from_zero = true;
    std::vector<std::string> labels = {};  ///< of values that are no numbers: x is a place in it
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
    double cap = 0;  ///< the darkest colour's value, and of all beyond; 0: the largest
};

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
using PageBlock =
    std::variant<PageTable, BarChart, LineChart, HeatChart, TimelineChart, std::string>;

struct PageSection {
    std::string heading;
    std::vector<std::string> sentences;
    std::vector<PageBlock> blocks;   ///< text: as it is, line by line, in one width
    std::vector<std::string> notes;  ///< small print
};

struct Page {
    std::string title;
    std::vector<std::string> lead;  ///< what was asked, a line each
    std::vector<PageSection> sections;
    std::vector<std::pair<std::string, std::string>> configuration = {};  ///< name and text
    std::string document = {};  ///< what the same command prints with --json
    std::string command = {};   ///< that made it
};

/// The whole file.
std::string page_html(const Page& page);

/// Lines of a text for people, without empty ones: a lead of its head.
std::vector<std::string> lines_of(std::string_view text);

}  // namespace moehub
