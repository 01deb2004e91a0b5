#include "report/rank_report.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

using Align = Table::Align;

std::string source_of(const RankGroup& group) {
    return group.source.empty() ? "all sources" : group.source;
}

/// Where predictions are what was published, and 10 % more and less.
void add_guides(LineChart& chart) {
    double least = 100, most = 0;
    for (const LineSeries& series : chart.series)
        for (const ChartPoint& point : series.points) {
            least = std::min(least, point.x);
            most = std::max(most, point.x);
        }
    constexpr struct {
        const char* name;
        double slope;
    } kGuides[] = {{"as published", 1}, {"+10 %", 1.1}, {"−10 %", 0.9}};
    for (const auto& [name, slope] : kGuides)
        chart.series.push_back(
            {name, {{least, slope * least, name}, {most, slope * most, name}}, true});
}

}  // namespace

Page ranking_page(const RunRanking& ranking) {
    LineChart chart{"Published and predicted MFU",
                    {"published, %", false, false},
                    {"predicted, %", false, false},
                    {},
                    false};
    PageTable groups{"Order of published and predicted MFU",
                     {{"model", Align::left},
                      {"source", Align::left},
                      {"runs"},
                      {"rank correlation"},
                      {"pairs in order"}},
                     {}};
    PageTable runs{"Every run",
                   {{"line"},
                    {"model", Align::left},
                    {"published"},
                    {"predicted"},
                    {"GPUs"},
                    {"machine", Align::left},
                    {"parallel layout", Align::left}},
                   {}};
    for (const RankGroup& group : ranking.groups) {
        groups.rows.push_back(
            {group.model, source_of(group), fmt::format("{}", group.runs.size()),
             fmt::format("{:.3f}", group.correlation),
             fmt::format("{} of {}", group.pairs - group.swapped.size(), group.pairs)});
        if (group.source.empty()) continue;  // its runs stand in the groups of their sources
        LineSeries& series = chart.series.emplace_back();
        series.name = fmt::format("{}, {}", group.model, group.source);
        for (const RankedRun& one : group.runs) {
            series.points.push_back({100 * one.published, 100 * one.predicted,
                                     fmt::format("line {}: {} × {}, {}", one.run.line, one.run.gpus,
                                                 one.run.machine, one.layout)});
            runs.rows.push_back({fmt::format("{}", one.run.line), group.model,
                                 percent(one.published), percent(one.predicted),
                                 fmt::format("{}", one.run.gpus), one.run.machine, one.layout});
        }
    }
    Page page{"Training runs, published and predicted", {}, {{"Runs", {}, {}, {}}}};
    PageSection& section = page.sections.front();
    if (!chart.series.empty()) {
        add_guides(chart);
        section.blocks.push_back(std::move(chart));
    }
    section.blocks.push_back(std::move(groups));
    if (!runs.rows.empty()) section.blocks.push_back(std::move(runs));
    for (const RunNotRanked& one : ranking.left_out)
        section.notes.push_back(fmt::format("Left out, line {}: {}", one.line, one.why));
    return page;
}

}  // namespace moehub
