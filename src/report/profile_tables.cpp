#include "report/profile_tables.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace moehub {
namespace {

using Align = Table::Align;

std::string hundredths(double value) {
    return fmt::format("{:.2f}", value);
}
/// Counts are whole almost always.
std::string rows_text(double rows) {
    constexpr double kWholeBelow = 0x1p53;
    const bool is_whole = rows < kWholeBelow && rows == std::floor(rows);
    return is_whole ? grouped(static_cast<std::int64_t>(rows)) : significant(rows);
}

/// "31.2 (17.0)": beside it what chance gives.
std::string beside_chance(double value, double chance) {
    return fmt::format("{:.1f} ({:.1f})", 100 * value, 100 * chance);
}

template <class Part>
std::string concentration_text(const std::optional<Part>& part) {
    if (!part) return "";
    return beside_chance(part->concentration.heaviest_tenth, part->concentration.by_chance);
}

template <class Part>
bool any_has(const ProfileSummary& summary, std::optional<Part> LayerSummary::*part) {
    return std::any_of(summary.layers.begin(), summary.layers.end(),
                       [part](const LayerSummary& layer) { return (layer.*part).has_value(); });
}

}  // namespace

std::string name_text(const ProfileReport& report, std::size_t profile) {
    const std::string& name = report.profiles[profile].name;
    return report.profiles.size() > 1 ? fmt::format("{}  {}", profile + 1, name) : name;
}

std::string size_text(const ProfileSummary& summary) {
    std::string out;
    if (summary.tokens > 0) out += fmt::format("{} tokens, ", grouped(summary.tokens));
    if (summary.tokens == 0 && summary.steps > 0)
        out += fmt::format("counts of {} steps, ", grouped(summary.steps));
    if (summary.tokens == 0 && summary.steps == 0) out += "counts, ";
    out += fmt::format("{} layer{} of {} experts", summary.layers.size(),
                       summary.layers.size() == 1 ? "" : "s", summary.experts);
    if (summary.top_k > 0) out += fmt::format(", top-{}", summary.top_k);
    return out;
}

ReportTable layers_table(const ProfileSummary& summary) {
    ReportTable table{
        {{"layer"}, {"busiest"}, {"/ mean"}, {"Gini"}, {"effective"}, {"GPU"}, {"bound"}}, {}};
    const bool pairs = any_has(summary, &LayerSummary::coactivation),
               next = any_has(summary, &LayerSummary::next),
               halves = any_has(summary, &LayerSummary::halves);
    if (pairs) table.columns.push_back({"together %"});
    if (next) table.columns.push_back({"next %"});
    if (halves) table.columns.push_back({"moved %"});
    for (const LayerSummary& layer : summary.layers) {
        const LoadSummary& load = layer.load;
        auto& row = table.rows.emplace_back(std::vector<std::string>{
            fmt::format("{}", layer.number), fmt::format("{}", load.busiest),
            hundredths(load.largest_over_mean), hundredths(load.gini),
            tenths(load.effective_experts), hundredths(load.gpu_contiguous),
            hundredths(load.gpu_bound)});
        if (pairs) row.push_back(concentration_text(layer.coactivation));
        if (next) row.push_back(concentration_text(layer.next));
        if (halves && layer.halves)
            row.push_back(beside_chance(layer.halves->total_variation, layer.halves->by_chance));
    }
    return table;
}

std::vector<std::string> layers_legend(const ProfileSummary& summary) {
    std::vector<std::string> lines{
        "busiest: the expert with the most rows, over the mean of all",
        "effective: so many experts with equal rows were as uneven",
        fmt::format("GPU: the busiest of {} GPUs over their mean, experts in order; bound: the "
                    "same, at best",
                    summary.gpus)};
    if (summary.pair_tokens > 0)
        lines.emplace_back(
            "together: pairs of experts in the layer that are in the heaviest 10 % of pairs; next: "
            "from it to the next");
    if (any_has(summary, &LayerSummary::halves))
        lines.emplace_back("moved: load on other experts in the second half of the profile");
    if (summary.pair_tokens > 0 || any_has(summary, &LayerSummary::halves))
        lines.emplace_back("in brackets: by chance");
    return lines;
}

ReportTable busiest_table(const ProfileSummary& summary, int layer, int most, int bar_width) {
    ReportTable table{{{"expert"}, {"rows"}, {"share"}, {"/ mean"}, {"", Align::left}}, {}};
    const LoadSummary& load = summary.layers[static_cast<std::size_t>(layer)].load;
    const double* const counts =
        summary.counts.data() + static_cast<std::ptrdiff_t>(layer) * summary.experts;
    std::vector<int> order(static_cast<std::size_t>(summary.experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [counts](int a, int b) { return counts[a] > counts[b]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(most)));
    for (const int expert : order) {
        if (!(load.rows > 0)) break;
        table.rows.push_back({fmt::format("{}", expert), rows_text(counts[expert]),
                              percent(counts[expert] / load.rows),
                              hundredths(counts[expert] / load.mean),
                              bar(counts[expert] / load.largest, bar_width)});
    }
    return table;
}

ReportTable pairs_table(const LayerSummary& layer) {
    ReportTable table{{{"experts"}, {"together"}, {"share of pairs"}, {"over chance"}}, {}};
    if (!layer.coactivation) return table;
    for (const CoactivePair& pair : layer.coactivation->top)
        table.rows.push_back({fmt::format("{} + {}", pair.first, pair.second),
                              grouped(pair.together),
                              percent(static_cast<double>(pair.together) /
                                      static_cast<double>(layer.coactivation->pairs)),
                              hundredths(pair.lift)});
    return table;
}

ReportTable differences_table(const ProfileReport& report) {
    ReportTable table{{{"profile", Align::left}}, {}};
    for (std::size_t i = 0; i < report.profiles.size(); ++i) {
        table.columns.push_back({fmt::format("{}", i + 1)});
        auto& row = table.rows.emplace_back(report.profiles.size() + 1);
        row[0] = name_text(report, i);
        row[i + 1] = "·";
    }
    for (const ProfileDifference& one : report.differences)
        table.rows[one.first][one.second + 1] = table.rows[one.second][one.first + 1] =
            fmt::format("{:.1f} ({:.1f})", 100 * one.total_variation, 100 * one.by_chance);
    return table;
}

}  // namespace moehub
