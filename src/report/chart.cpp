#include "report/chart.hpp"

#include "report/number.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::size_t kMostTold = 12;  ///< numbers in words

Json values_json(const std::vector<std::optional<double>>& values) {
    Json list = Json::array();
    for (const auto& value : values) list.push_back(value ? Json(*value) : Json(nullptr));
    return list;
}

Json json_of(const ChartSeries& one) {
    return {{"name", one.name}, {"values", values_json(one.values)}};
}
Json json_of(const ChartAxis& axis) {
    return {{"title", axis.title},
            {"logarithmic", axis.logarithmic},
            {"from_zero", axis.from_zero},
            {"labels", axis.labels}};
}
Json json_of(const ChartPoint& point) {
    Json json{point.x, point.y, point.label};
    if (!point.mark.empty()) json.push_back(point.mark);
    return json;
}
Json json_of(const HeatLayer& one) {
    return {{"name", one.name}, {"values", one.values}};
}
Json json_of(const TimelineSeries& one) {
    return {{"name", one.name}, {"bin", one.bin}, {"values", one.values}};
}
Json json_of(const TimelineLane& one) {
    return {{"name", one.name}, {"spans", one.spans}};
}
Json json_of(const LineSeries& one);
Json json_of(const TimelineGpu& gpu);
Json json_of(const TimelineSystem& one);

template <class One>
Json list_of(const std::vector<One>& all) {
    Json list = Json::array();
    for (const One& one : all) list.push_back(json_of(one));
    return list;
}

Json json_of(const LineSeries& one) {
    return {{"name", one.name}, {"guide", one.guide}, {"points", list_of(one.points)}};
}

Json json_of(const TimelineGpu& gpu) {
    return {{"name", gpu.name},
            {"lanes", list_of(gpu.lanes)},
            {"sms", list_of(gpu.sms)},
            {"links", list_of(gpu.links)},
            {"units", list_of(gpu.units)}};
}

Json json_of(const TimelineSystem& one) {
    return {{"name", one.name},
            {"end", one.end},
            {"gpus", list_of(one.gpus)},
            {"switches", list_of(one.switches)}};
}

Json json_of(const BarChart& chart) {
    return {{"kind", "bars"},
            {"title", chart.title},
            {"unit", chart.unit},
            {"stacked", chart.stacked},
            {"systems", chart.systems},
            {"categories", chart.categories},
            {"series", list_of(chart.series)}};
}

Json json_of(const LineChart& chart) {
    return {{"kind", "lines"},       {"title", chart.title},  {"joined", chart.joined},
            {"x", json_of(chart.x)}, {"y", json_of(chart.y)}, {"series", list_of(chart.series)}};
}

Json json_of(const HeatChart& chart) {
    return {{"kind", "heat"},
            {"title", chart.title},
            {"unit", chart.unit},
            {"row_title", chart.row_title},
            {"column_title", chart.column_title},
            {"rows", chart.rows},
            {"columns", chart.columns},
            {"cap", chart.cap},
            {"layers", list_of(chart.layers)}};
}

Json json_of(const TimelineChart& chart) {
    return {{"kind", "timeline"}, {"title", chart.title}, {"systems", list_of(chart.systems)}};
}

std::size_t step_for(std::size_t count, std::size_t most) {
    const std::size_t least = std::max<std::size_t>(1, (count + most - 1) / most);
    for (std::size_t step = least; step < 2 * least; ++step)
        if (count % step == 0) return step;
    return least;
}

/// The first of so many each.
std::vector<std::string> stepped(const std::vector<std::string>& names, std::size_t step) {
    if (step == 1) return names;
    std::vector<std::string> firsts;
    for (std::size_t at = 0; at < names.size(); at += step) firsts.push_back(names[at] + " …");
    return firsts;
}

struct Steps {
    std::size_t rows, columns;
};

std::vector<double> merged_cells(const std::vector<double>& values, std::size_t columns, Steps step,
                                 MergeCells how) {
    const auto over = [](std::size_t count, std::size_t by) { return (count + by - 1) / by; };
    const std::size_t wide = over(columns, step.columns);
    std::vector<double> cells(over(values.size() / columns, step.rows) * wide, 0.0);
    std::vector<int> gathered(cells.size(), 0);
    for (std::size_t at = 0; at < values.size(); ++at) {
        const std::size_t cell = at / columns / step.rows * wide + at % columns / step.columns;
        ++gathered[cell];
        double& value = cells[cell];
        value = how == MergeCells::largest ? std::max(value, values[at])
                                           : value + (values[at] - value) / gathered[cell];
    }
    return cells;
}

/// "ideal 512, megatron-te 930 and 9 more".
std::string listed(const std::vector<std::string>& parts) {
    const std::size_t told = std::min(parts.size(), kMostTold);
    const std::vector<std::string> first(parts.begin(),
                                         parts.begin() + static_cast<std::ptrdiff_t>(told));
    return fmt::format("{}{}", fmt::join(first, ", "),
                       told < parts.size() ? fmt::format(" and {} more", parts.size() - told) : "");
}

std::string words_of(const BarChart& chart) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < chart.categories.size(); ++i) {
        double sum = 0;
        std::vector<std::string> numbers;
        for (const ChartSeries& one : chart.series) {
            sum += one.values[i].value_or(0);
            numbers.push_back(one.values[i] ? significant(*one.values[i]) : "none");
        }
        parts.push_back(fmt::format(
            "{} {}", chart.categories[i],
            chart.stacked ? significant(sum) : fmt::format("{}", fmt::join(numbers, " and "))));
    }
    return fmt::format("Bars, in {}: {}.", chart.unit, listed(parts));
}

std::string words_of(const LineChart& chart) {
    std::vector<std::string> parts;
    for (const LineSeries& one : chart.series) {
        if (one.points.empty() || one.guide) continue;
        const auto [low, high] =
            std::minmax_element(one.points.begin(), one.points.end(),
                                [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; });
        parts.push_back(
            fmt::format("{} from {} to {}", one.name, significant(low->y), significant(high->y)));
    }
    return fmt::format("{} over {}: {}.", chart.y.title, chart.x.title, listed(parts));
}

std::string words_of(const HeatChart& chart) {
    std::vector<std::string> parts;
    for (const HeatLayer& one : chart.layers) {
        if (one.values.empty()) continue;
        const auto most = std::max_element(one.values.begin(), one.values.end());
        const auto at = static_cast<std::size_t>(most - one.values.begin());
        parts.push_back(fmt::format("{}{} at {} and {}", one.name.empty() ? "" : one.name + " ",
                                    significant(*most), chart.rows[at / chart.columns.size()],
                                    chart.columns[at % chart.columns.size()]));
    }
    return fmt::format("Map of {} {} by {} {}, in {}; largest: {}.", chart.rows.size(),
                       chart.row_title, chart.columns.size(), chart.column_title, chart.unit,
                       listed(parts));
}

std::string words_of(const TimelineChart& chart) {
    std::vector<std::string> parts;
    for (const TimelineSystem& one : chart.systems)
        parts.push_back(fmt::format("{} until {} µs", one.name, significant(one.end)));
    return fmt::format("What each GPU does over time: {}.", listed(parts));
}

}  // namespace

HeatChart merged(HeatChart chart, std::size_t most_rows, std::size_t most_columns, MergeCells how) {
    const std::size_t columns = chart.columns.size();
    const Steps step{step_for(chart.rows.size(), most_rows), step_for(columns, most_columns)};
    if (columns == 0 || (step.rows == 1 && step.columns == 1)) return chart;
    for (HeatLayer& layer : chart.layers)
        layer.values = merged_cells(layer.values, columns, step, how);
    chart.rows = stepped(chart.rows, step.rows);
    chart.columns = stepped(chart.columns, step.columns);
    chart.row_step *= step.rows;
    chart.column_step *= step.columns;
    return chart;
}

Json chart_json(const Chart& chart) {
    return std::visit([](const auto& one) { return json_of(one); }, chart);
}

std::string_view title_of(const Chart& chart) {
    return std::visit([](const auto& one) { return std::string_view(one.title); }, chart);
}

std::string chart_words(const Chart& chart) {
    return fmt::format("{}. {}", title_of(chart),
                       std::visit([](const auto& one) { return words_of(one); }, chart));
}

}  // namespace moehub
