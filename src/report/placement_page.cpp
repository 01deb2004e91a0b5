#include "report/placement_page.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

using Align = Table::Align;
using Value = std::optional<double>;

/// What stands for a layout, and whether it is known of these tokens.
struct Measure {
    const char* title;
    double Evaluation::*value;
    bool KnownParts::*needs;  ///< null: nothing
    bool share = false;
    bool of_nodes = false;
};
constexpr Measure kMeasures[] = {
    {"load", &Evaluation::load_max_over_mean, nullptr},
    {"worst layer", &Evaluation::load_worst_layer, nullptr},
    {"GPUs/token", &Evaluation::gpus_per_token, &KnownParts::tokens},
    {"nodes/token", &Evaluation::nodes_per_token, &KnownParts::tokens, false, true},
    {"off-GPU", &Evaluation::off_gpu_transitions, &KnownParts::transitions, true},
    {"off-node", &Evaluation::off_node_transitions, &KnownParts::transitions, true, true},
    {"heaviest pair", &Evaluation::heaviest_pair, &KnownParts::transitions},
    {"activated", &Evaluation::activated_max_over_mean, &KnownParts::tokens},
};

std::vector<Measure> measures_of(const PlacementReport& report, const KnownParts& known) {
    std::vector<Measure> list;
    for (const Measure& one : kMeasures)
        if ((one.needs == nullptr || known.*one.needs) && (!one.of_nodes || report.nodes > 1))
            list.push_back(one);
    return list;
}

std::string text_of(const Measure& measure, double value) {
    return measure.share ? percent(value) : fmt::format("{:.3f}", value);
}

/// A baseline that is the method asked for stands once.
std::vector<PlacementRow> rows_of(const PlacementTable& table) {
    std::vector<PlacementRow> rows;
    for (std::size_t i = 0; i < table.rows.size(); ++i)
        if (i + 1 == table.rows.size() || table.rows[i].layout != table.rows.back().layout)
            rows.push_back(table.rows[i]);
    return rows;
}

PageTable layouts_table(const PlacementReport& report, const PlacementTable& table,
                        std::string_view what) {
    PageTable out{fmt::format("{}, {}", table.profile, what), {{"layout", Align::left}}, {}};
    const std::vector<Measure> measures = measures_of(report, table.known);
    for (const Measure& one : measures) out.columns.push_back({one.title});
    if (table.known.moved) out.columns.push_back({"moved"});
    for (const PlacementRow& row : rows_of(table)) {
        std::vector<std::string>& cells = out.rows.emplace_back();
        cells.push_back(row.layout);
        for (const Measure& one : measures)
            cells.push_back(text_of(one, row.evaluation.*one.value));
        if (table.known.moved) cells.push_back(grouped(row.evaluation.moved_experts));
    }
    return out;
}

/// Each measure over that of the first layout: less is better in all of them.
BarChart measures_chart(const PlacementReport& report, const PlacementTable& table) {
    const std::vector<PlacementRow> rows = rows_of(table);
    BarChart chart{
        fmt::format("Layouts against {}: less is better", rows.front().layout), "% of it", {}, {}};
    for (const PlacementRow& row : rows) chart.series.push_back({row.layout, {}});
    for (const Measure& one : measures_of(report, table.known)) {
        const double first = rows.front().evaluation.*one.value;
        if (!(first > 0)) continue;
        chart.categories.emplace_back(one.title);
        for (std::size_t i = 0; i < rows.size(); ++i)
            chart.series[i].values.emplace_back(100 * (rows[i].evaluation.*one.value) / first);
    }
    return chart;
}

PageSection layouts_section(const PlacementReport& report) {
    PageSection section{
        "Layouts side by side",
        {},
        {measures_chart(report, mean_table(report.judged()))},
        {"Load: the busiest GPU over the mean, mean over layers. Off-GPU: "
         "transitions from a layer to the next that change GPU. Heaviest pair: over "
         "an even spread. Activated: experts that a batch wakes, busiest GPU over "
         "the mean."}};
    for (const PlacementTable& table : report.training)
        section.blocks.push_back(layouts_table(report, table, "placed by"));
    for (const PlacementTable& table : report.held_out)
        section.blocks.push_back(layouts_table(report, table, "held out"));
    return section;
}

PageSection pairs_section(const PlacementReport& report) {
    HeatChart map{"Transitions from GPU to GPU", "% of all", "from GPU", "to GPU", {}, {}, {}};
    HeatLayer& layer = map.layers.emplace_back();
    for (std::size_t from = 0; from < report.pairs.size(); ++from) {
        map.rows.push_back(fmt::format("{}", from));
        for (const double share : report.pairs[from]) layer.values.push_back(100 * share);
    }
    map.columns = map.rows;
    return {"Traffic between GPUs", {}, {std::move(map)}, {traffic_model()}};
}

PageSection front_section(const PlacementReport& report) {
    LineChart chart{"Load against GPUs per token",
                    {"GPUs per token", false, false},
                    {"load, busiest GPU over mean", false, false},
                    {{"layouts", {}}},
                    false};
    PageTable table{"Layouts of which none is better in everything", {}, {}};
    const std::vector<Measure> measures = measures_of(report, report.judged().front().known);
    for (const Measure& one : measures) table.columns.push_back({one.title});
    table.columns.push_back({"options", Align::left});
    for (const ParetoPoint& point : *report.pareto) {
        const Evaluation& one = point.evaluation;
        chart.series.front().points.push_back(
            {one.gpus_per_token, one.load_max_over_mean, flags_of(point)});
        std::vector<std::string>& cells = table.rows.emplace_back();
        for (const Measure& measure : measures)
            cells.push_back(text_of(measure, one.*measure.value));
        cells.push_back(flags_of(point));
    }
    return {"The front", {}, {std::move(chart), std::move(table)}, {}};
}

PageSection effect_section(const PlacementReport& report) {
    const PlacementEffect& effect = *report.effect;
    BarChart chart{"A MoE layer, mean over layers and steps", "µs", {}, {}};
    PageTable table{fmt::format("Simulated: {} step{} of {} tokens", effect.steps,
                                effect.steps == 1 ? "" : "s", grouped(effect.step_tokens)),
                    {{"system", Align::left},
                     {"layout", Align::left},
                     {"layer µs"},
                     {"95 %"},
                     {"all-to-all µs"},
                     {"95 %"},
                     {"experts µs"},
                     {"95 %"},
                     {"model ms"},
                     {"vs order"},
                     {"vs eplb"}},
                    {}};
    for (const LayoutEffect& one : effect.layouts) {
        auto found = std::find(chart.categories.begin(), chart.categories.end(), one.system);
        if (found == chart.categories.end()) found = chart.categories.insert(found, one.system);
        const auto at = static_cast<std::size_t>(found - chart.categories.begin());
        auto series =
            std::find_if(chart.series.begin(), chart.series.end(),
                         [&](const ChartSeries& other) { return other.name == one.layout; });
        if (series == chart.series.end()) series = chart.series.insert(series, {one.layout, {}});
        if (series->values.size() <= at) series->values.resize(at + 1);
        series->values[at] = to_us(one.layer.mean);
        std::vector<std::string>& cells = table.rows.emplace_back();
        cells = {one.system, one.layout};
        for (const TimeSpread* spread : {&one.layer, &one.all_to_all, &one.processing}) {
            cells.push_back(tenths(to_us(spread->mean)));
            cells.push_back(tenths(to_us(spread->p95)));
        }
        cells.push_back(one.model > 0 ? significant(to_us(one.model) / 1000) : "–");
        cells.push_back(fmt::format("{:.3f}×", one.speedup));
        cells.push_back(over_eplb(effect, one));
    }
    for (ChartSeries& one : chart.series) one.values.resize(chart.categories.size());
    return {"What it does to time",
            {fmt::format("Taken: {}.", report.taken)},
            {std::move(chart), std::move(table)},
            effect.notes};
}

}  // namespace

Page placement_page(const PlacementReport& report) {
    Page page{fmt::format("Experts placed on {} GPUs of {}", report.gpus, report.machine),
              {fmt::format("{}{} layers of {} experts; {}, seed {}",
                           report.model ? *report.model + ": " : "", report.layers, report.experts,
                           method_text(report), report.seed)},
              {{"What it means", placement_sentences(report), {}, {}}}};
    page.sections.push_back(layouts_section(report));
    if (!report.pairs.empty()) page.sections.push_back(pairs_section(report));
    if (report.pareto) page.sections.push_back(front_section(report));
    if (report.effect) page.sections.push_back(effect_section(report));
    return page;
}

}  // namespace moehub
