// Maps and lines of recorded routing.
#include "answers/profile_answer.hpp"
#include "place/profile/profile_summary_parts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kMapLayers = 256, kMapExperts = 512;  ///< rows, columns of a map
constexpr std::size_t kMapPairs = 128;

/// A round value that all but one in 200 are below.
double colour_cap(std::vector<double> values, double least) {
    const std::size_t rank = values.size() - 1 - values.size() / 200;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values.begin(), at, values.end());
    constexpr std::array<double, 12> kRound{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20};
    const double wanted = std::max(*at, least);
    for (const double round : kRound)
        if (wanted <= round) return round;
    return std::ceil(wanted / 10) * 10;
}

/// The map rounded to hundredths, which keeps pages small, with a cap that one cell far above does
/// not move.
HeatChart finished(HeatChart chart, double least_cap) {
    std::vector<double>& values = chart.layers.front().values;
    chart.cap = colour_cap(values, least_cap);
    for (double& value : values) value = std::round(value * 100) / 100;
    return chart;
}

/// Experts of a layer, in an order.
struct Ordered {
    int layer;
    std::vector<int> experts;

    std::string words() const { return fmt::format("expert of layer {}", layer); }
};

HeatChart pair_map(std::string title, const std::vector<double>& values, const Ordered& rows,
                   const Ordered& columns) {
    HeatChart chart{std::move(title),
                    "times chance",
                    rows.words(),
                    columns.words(),
                    {},
                    {},
                    {{"", reordered(values, rows.experts, columns.experts)}}};
    for (const int row : rows.experts) chart.rows.push_back(std::to_string(row));
    for (const int column : columns.experts) chart.columns.push_back(std::to_string(column));
    return finished(merged(std::move(chart), kMapPairs, kMapPairs, MergeCells::mean), 3);
}

/// A line over the layers that have the value.
LineSeries series_of(const ProfileSummary& summary, std::string name,
                     const std::function<std::optional<double>(const LayerSummary&)>& value) {
    LineSeries series{std::move(name), {}};
    for (const LayerSummary& layer : summary.layers)
        if (const auto one = value(layer))
            series.points.push_back({static_cast<double>(layer.number), *one});
    return series;
}

template <class Part>
void add_concentration(LineChart& chart, const ProfileSummary& summary,
                       std::optional<Part> LayerSummary::*part, const std::string& name) {
    for (const auto& [share, words] : {std::pair{&Concentration::heaviest_tenth, ""},
                                       {&Concentration::by_chance, ", by chance"}}) {
        LineSeries line =
            series_of(summary, name + words, [part, member = share](const LayerSummary& layer) {
                return layer.*part ? std::optional(100 * (*(layer.*part)).concentration.*member)
                                   : std::nullopt;
            });
        if (!line.points.empty()) chart.series.push_back(std::move(line));
    }
}

}  // namespace

HeatChart load_map(const ProfileSummary& summary) {
    HeatChart chart{"Load, layers × experts", "times the layer's mean", "layer", "expert", {}, {},
                    {{"", summary.counts}}};
    for (const LayerSummary& layer : summary.layers)
        chart.rows.push_back(std::to_string(layer.number));
    for (int expert = 0; expert < summary.experts; ++expert)
        chart.columns.push_back(std::to_string(expert));
    std::vector<double>& values = chart.layers.front().values;
    for (std::size_t at = 0; at < values.size(); ++at) {
        const double mean = summary.layers[at / chart.columns.size()].load.mean;
        values[at] = mean > 0 ? values[at] / mean : 0;
    }
    return finished(merged(std::move(chart), kMapLayers, kMapExperts), 2);
}

std::vector<LineChart> layer_charts(const ProfileSummary& summary) {
    LineChart gpus{fmt::format("Busiest of {} GPUs, by layer", summary.gpus),
                   {"layer", false, false},
                   {"load over the mean", false, false},
                   {series_of(summary, "experts in order",
                              [](const LayerSummary& layer) { return layer.load.gpu_contiguous; }),
                    series_of(summary, "at best without copies",
                              [](const LayerSummary& layer) { return layer.load.gpu_bound; })}};
    LineChart pairs{"How pairs of experts concentrate, by layer",
                    {"layer", false, false},
                    {"% in the heaviest tenth"},
                    {}};
    add_concentration(pairs, summary, &LayerSummary::coactivation, "in the layer");
    add_concentration(pairs, summary, &LayerSummary::next, "to the next layer");
    if (pairs.series.empty()) return {std::move(gpus)};
    return {std::move(gpus), std::move(pairs)};
}

Section pairs_section(const ProfileReport& report) {
    const PairMatrices& pairs = report.pairs;
    const auto layers = report.profiles.front().layers.begin() + report.detailed_layer();
    Ordered here{layers->number, std::vector<int>(static_cast<std::size_t>(pairs.experts))};
    std::iota(here.experts.begin(), here.experts.end(), 0);
    if (!pairs.lift.empty()) here.experts = chained(pairs.lift, pairs.experts);
    Section section{"Pairs of experts"};
    if (!pairs.lift.empty())
        section.blocks.push_back(
            pair_map(fmt::format("Layer {}: chosen together", here.layer), pairs.lift, here, here));
    if (!pairs.next.empty()) {
        const Ordered next{std::next(layers)->number, along_diagonal(pairs.next, here.experts)};
        section.blocks.push_back(
            pair_map(fmt::format("From layer {} to layer {}", here.layer, next.layer), pairs.next,
                     here, next));
    }
    if (!section.blocks.empty())
        section.notes.push_back(
            {fmt::format("Experts are ordered such that those chosen together are neighbours.{}",
                         report.profiles.size() > 1 ? " Of the first profile." : ""),
             Reader::page});
    return section;
}

}  // namespace moehub
