#include "report/profile_page.hpp"

#include "report/profile_colour.hpp"
#include "report/profile_heat.hpp"
#include "report/profile_order.hpp"
#include "report/profile_tables.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kBusiest = 16;
constexpr HeatSize kMostCells{256, 512};
constexpr int kMostPairs = 128;  ///< cells of a map of pairs, each way

PageTable captioned(std::string caption, ReportTable table) {
    return {std::move(caption), std::move(table.columns), std::move(table.rows)};
}

/// To hundredths, which keeps the page small.
std::vector<double> hundredths(std::vector<double> values) {
    for (double& value : values) value = std::round(value * 100) / 100;
    return values;
}

/// "12", or "12 …" where several are merged.
std::string label(int first, int step) {
    return fmt::format("{}{}", first, step > 1 ? " …" : "");
}

HeatChart load_map(const ProfileSummary& summary) {
    HeatMap map = heat_map(relative_load(summary), summary.experts, kMostCells);
    HeatChart chart{"Load over the layer's mean", "times the mean", "layer", "expert", {}, {}, {}};
    for (int row = 0; row < map.rows; ++row)
        chart.rows.push_back(label(
            summary.layers[static_cast<std::size_t>(row * map.row_step)].number, map.row_step));
    for (int column = 0; column < map.columns; ++column)
        chart.columns.push_back(label(column * map.column_step, map.column_step));
    chart.cap = colour_cap(map.values, 2);
    chart.layers.push_back({"", hundredths(std::move(map.values))});
    return chart;
}

template <class Part>
void add_concentration(LineChart& chart, const ProfileSummary& summary,
                       std::optional<Part> LayerSummary::*part, const std::string& name) {
    LineSeries found{name, {}};
    LineSeries chance{name + ", by chance", {}};
    for (const LayerSummary& layer : summary.layers)
        if (const auto& one = layer.*part) {
            const double x = layer.number;
            found.points.push_back({x, 100 * one->concentration.heaviest_tenth});
            chance.points.push_back({x, 100 * one->concentration.by_chance});
        }
    if (found.points.empty()) return;
    chart.series.push_back(std::move(found));
    chart.series.push_back(std::move(chance));
}

LineChart gpus_chart(const ProfileSummary& summary) {
    LineChart chart{fmt::format("Busiest of {} GPUs, by layer", summary.gpus),
                    {"layer", false, false},
                    {"load over the mean", false, false},
                    {{"experts in order", {}}, {"at best without copies", {}}}};
    for (const LayerSummary& layer : summary.layers) {
        chart.series[0].points.push_back(
            {static_cast<double>(layer.number), layer.load.gpu_contiguous});
        chart.series[1].points.push_back({static_cast<double>(layer.number), layer.load.gpu_bound});
    }
    return chart;
}

PageSection profile_section(const ProfileReport& report, std::size_t profile) {
    const ProfileSummary& summary = report.profiles[profile];
    PageSection section{name_text(report, profile),
                        {size_text(summary)},
                        {load_map(summary), gpus_chart(summary)},
                        layers_legend(summary)};
    LineChart pairs{"How pairs of experts concentrate, by layer",
                    {"layer", false, false},
                    {"% in the heaviest tenth"},
                    {}};
    add_concentration(pairs, summary, &LayerSummary::coactivation, "in the layer");
    add_concentration(pairs, summary, &LayerSummary::next, "to the next layer");
    if (!pairs.series.empty()) section.blocks.push_back(std::move(pairs));
    const int layer = report.pictured_layer();
    const LayerSummary& one = summary.layers[static_cast<std::size_t>(layer)];
    section.blocks.push_back(captioned("Over the layers", overview_table(summary)));
    section.blocks.push_back(captioned(fmt::format("Busiest experts of layer {}", one.number),
                                       busiest_table(summary, layer, kBusiest, 24)));
    if (ReportTable together = pairs_table(one); !together.rows.empty())
        section.blocks.push_back(
            captioned(fmt::format("Chosen together in layer {}, farthest above chance", one.number),
                      std::move(together)));
    section.blocks.push_back(captioned("By layer", layers_table(summary)));
    return section;
}

/// Experts of a cell, in the order of the map.
std::vector<std::string> expert_labels(const std::vector<int>& order, int cells, int step) {
    std::vector<std::string> labels;
    for (int cell = 0; cell < cells; ++cell)
        labels.push_back(label(order[static_cast<std::size_t>(cell * step)], step));
    return labels;
}

/// Rows and columns in the orders given.
HeatChart pair_map(std::string title, const std::vector<double>& values,
                   const std::vector<int>& rows, const std::vector<int>& columns) {
    HeatMap map = heat_map(reordered(values, rows, columns), static_cast<int>(columns.size()),
                           {kMostPairs, kMostPairs}, MergeCells::mean);
    HeatChart chart{std::move(title), "times chance", "expert", "expert", {}, {}, {}};
    chart.rows = expert_labels(rows, map.rows, map.row_step);
    chart.columns = expert_labels(columns, map.columns, map.column_step);
    chart.cap = colour_cap(map.values, 3);
    chart.layers.push_back({"", hundredths(std::move(map.values))});
    return chart;
}

PageSection pairs_section(const ProfileReport& report) {
    const PairMatrices& pairs = report.pairs;
    const auto& layers = report.profiles.front().layers;
    const auto layer = static_cast<std::size_t>(report.pictured_layer());
    std::vector<int> order(static_cast<std::size_t>(pairs.experts));
    std::iota(order.begin(), order.end(), 0);
    if (!pairs.lift.empty()) order = chained(pairs.lift, pairs.experts);
    PageSection section{"Pairs of experts", {}, {}, {}};
    if (!pairs.lift.empty())
        section.blocks.push_back(
            pair_map(fmt::format("Layer {}: chosen together", layers[layer].number), pairs.lift,
                     order, order));
    if (!pairs.next.empty())
        section.blocks.push_back(
            pair_map(fmt::format("From layer {} to layer {}", layers[layer].number,
                                 layers[layer + 1].number),
                     pairs.next, order, along_diagonal(pairs.next, order)));
    section.notes.push_back(
        fmt::format("Experts are ordered such that those chosen together are neighbours.{}",
                    report.profiles.size() > 1 ? " Of the first profile." : ""));
    return section;
}

}  // namespace

Page profile_page(const ProfileReport& report) {
    Page page{fmt::format("Recorded routing: {}", report.profiles.front().name),
              {},
              {{"What it means for placing", profile_sentences(report), {}, {}}}};
    if (!report.differences.empty())
        page.sections.push_back(
            {"Load that differs",
             {},
             {captioned("% of the rows, mean over layers; in brackets: by chance",
                        differences_table(report))},
             {}});
    for (std::size_t i = 0; i < report.profiles.size(); ++i)
        page.sections.push_back(profile_section(report, i));
    if (!report.pairs.lift.empty() || !report.pairs.next.empty())
        page.sections.push_back(pairs_section(report));
    return page;
}

}  // namespace moehub
