#include "report/layer_page.hpp"

#include "report/comparison.hpp"
#include "report/tp_comparison.hpp"

#include <moehub/presets.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

using Align = Table::Align;

constexpr double kMega = 1e6;
constexpr int kMostMapped = 128;  ///< GPUs of a map from GPU to GPU

double megabytes(Bytes bytes) {
    return static_cast<double>(bytes) / kMega;
}

std::vector<std::string> names_of(const Comparison& comparison) {
    std::vector<std::string> names;
    for (const ComparisonRow& row : comparison.rows) names.push_back(row.result.system);
    return names;
}

/// A value of every row.
template <class Value>
ChartSeries series_of(const Comparison& comparison, std::string name, Value value) {
    ChartSeries series{std::move(name), {}};
    for (const ComparisonRow& row : comparison.rows) series.values.push_back(value(row));
    return series;
}

BarChart time_chart(const Comparison& comparison) {
    const auto part = [&](std::string name, Ps Breakdown::*member) {
        return series_of(comparison, std::move(name), [member](const ComparisonRow& row) {
            return to_us(row.result.breakdown.*member);
        });
    };
    return {
        "Where the time goes",
        "µs",
        names_of(comparison),
        {part("compute", &Breakdown::compute),
         part("exposed communication", &Breakdown::communication), part("host", &Breakdown::host)},
        true};
}

BarChart speedup_chart(const Comparison& comparison) {
    return {
        fmt::format("Speed-up over {}", comparison.baseline),
        "×",
        names_of(comparison),
        {series_of(comparison, "speed-up", [](const ComparisonRow& row) { return row.speedup; })},
        false,
        true};
}

PageTable systems_table(const Comparison& comparison) {
    const bool several = comparison.rows.size() > 1;
    const bool ideal = several && comparison.rows.front().share_of_ideal.has_value();
    PageTable table{"Systems side by side", {{"system", Align::left}, {"time µs"}}, {}};
    if (several) table.columns.push_back({fmt::format("vs {}", comparison.baseline)});
    if (ideal) table.columns.push_back({"of ideal"});
    for (const auto* title : {"compute µs", "exposed µs", "host µs", "up MB", "down MB", "SM busy"})
        table.columns.push_back({title});
    table.columns.push_back({"software", Align::left});
    for (const ComparisonRow& row : comparison.rows) {
        const LayerResult& result = row.result;
        std::vector<std::string>& cells = table.rows.emplace_back();
        cells = {result.system, tenths(to_us(result.time))};
        if (several) cells.push_back(fmt::format("{:.2f}×", row.speedup));
        if (ideal) cells.push_back(row.share_of_ideal ? percent(*row.share_of_ideal) : "–");
        for (const Ps time :
             {result.breakdown.compute, result.breakdown.communication, result.breakdown.host})
            cells.push_back(tenths(to_us(time)));
        cells.insert(cells.end(),
                     {tenths(megabytes(result.bytes_up)), tenths(megabytes(result.bytes_down)),
                      percent(result.sm_busy), software_words(row.system)});
    }
    return table;
}

/// Payload from GPU to GPU, a layer for each system that sent some.
HeatChart traffic_map(const Comparison& comparison) {
    HeatChart chart{"Payload from GPU to GPU", "MB", "from GPU", "to GPU", {}, {}, {}};
    for (const ComparisonRow& row : comparison.rows) {
        const std::vector<Bytes>& sent = row.result.timeline.sent;
        int gpus = 0;
        while (static_cast<std::size_t>(gpus) * static_cast<std::size_t>(gpus) < sent.size())
            ++gpus;
        const Bytes most = sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
        if (gpus > kMostMapped || most == 0) continue;
        if (chart.rows.empty())
            for (int gpu = 0; gpu < gpus; ++gpu) chart.rows.push_back(fmt::format("{}", gpu));
        HeatLayer& layer = chart.layers.emplace_back();
        layer.name = row.result.system;
        for (const Bytes bytes : sent) layer.values.push_back(megabytes(bytes));
    }
    chart.columns = chart.rows;
    return chart;
}

std::vector<SystemSpec> specs_of(const Comparison& comparison) {
    std::vector<SystemSpec> specs;
    for (const ComparisonRow& row : comparison.rows) specs.push_back(row.system);
    return specs;
}

void add_if_any(Page& page, PageSection section) {
    if (!section.blocks.empty()) page.sections.push_back(std::move(section));
}

}  // namespace

PageSection systems_section(const Comparison& comparison, const std::string& what) {
    PageSection section{what, {}, {time_chart(comparison)}, {}};
    if (comparison.rows.size() > 1) section.blocks.push_back(speedup_chart(comparison));
    section.blocks.push_back(systems_table(comparison));
    section.notes = {
        "Compute: some kernel ran on the GPU that computes longest. Exposed communication: none "
        "ran, and rows were underway. Host: neither."};
    return section;
}

PageSection traffic_section(const Comparison& comparison) {
    const auto bytes = [&](std::string name, Bytes LayerResult::*member) {
        return series_of(comparison, std::move(name), [member](const ComparisonRow& row) {
            return megabytes(row.result.*member);
        });
    };
    PageSection section{
        "Traffic",
        {},
        {BarChart{"On the wires, headers included, and payload between GPUs",
                  "MB",
                  names_of(comparison),
                  {bytes("up", &LayerResult::bytes_up), bytes("down", &LayerResult::bytes_down),
                   bytes("payload", &LayerResult::payload)}}},
        {"Up: from GPUs to switches and NICs; down: from them to GPUs."}};
    if (HeatChart map = traffic_map(comparison); !map.layers.empty()) {
        if (map.layers.size() > 1)
            section.notes.emplace_back("Colours of the map have a scale for each system.");
        section.blocks.push_back(std::move(map));
    }
    return section;
}

PageSection units_section(const Comparison& comparison) {
    PageSection section{"What units counted", {}, {}, {}};
    PageTable table{
        "Statistics of links, switches and hubs, summed over all GPUs unless they say "
        "otherwise",
        {{"unit", Align::left}, {"what", Align::left}},
        {}};
    std::vector<const Statistic*> kinds;
    for (const ComparisonRow& row : comparison.rows) {
        table.columns.push_back({row.result.system});
        for (const Statistic& one : row.result.statistics)
            if (std::none_of(kinds.begin(), kinds.end(), [&](const Statistic* known) {
                    return known->unit == one.unit && known->name == one.name;
                }))
                kinds.push_back(&one);
    }
    table.columns.push_back({"", Align::left});
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const auto* a, const auto* b) { return a->unit < b->unit; });
    for (const Statistic* kind : kinds) {
        std::vector<std::string>& cells = table.rows.emplace_back();
        cells = {kind->unit, in_words(*kind).name};
        for (const ComparisonRow& row : comparison.rows) {
            const auto& list = row.result.statistics;
            const auto found = std::find_if(list.begin(), list.end(), [&](const Statistic& one) {
                return one.unit == kind->unit && one.name == kind->name;
            });
            cells.push_back(found == list.end() ? "–" : in_words(*found).value);
        }
        cells.push_back(kind->doc);
    }
    if (!table.rows.empty()) section.blocks.push_back(std::move(table));
    return section;
}

std::vector<std::pair<std::string, std::string>> configuration_of(
    const Machine& machine, const std::optional<Model>& model,
    const std::vector<SystemSpec>& systems) {
    std::vector<std::pair<std::string, std::string>> list{
        {fmt::format("Machine: {}", machine.name), to_toml(machine)}};
    if (model) list.emplace_back(fmt::format("Model: {}", model->name), to_toml(*model));
    for (const SystemSpec& system : systems)
        list.emplace_back(fmt::format("System: {}", system.name), to_toml(system));
    return list;
}

Page comparison_page(const LayerCase& layer, const Comparison& comparison) {
    const bool one = comparison.rows.size() == 1;
    Page page{
        one ? fmt::format("{} on {}", comparison.rows.front().result.system, layer.machine_name)
            : fmt::format("{} systems on {}", comparison.rows.size(), layer.machine_name),
        lines_of(head_text(layer)),
        {}};
    page.sections.push_back(systems_section(comparison, "Time of the layer"));
    for (const std::string& text :
         {software_text(comparison), left_out_text(comparison.left_out), checks_text(comparison)})
        page.sections.back().notes.push_back(text);
    add_if_any(page, traffic_section(comparison));
    add_if_any(page, timeline_section(comparison));
    add_if_any(page, units_section(comparison));
    page.configuration = configuration_of(layer.machine, layer.model, specs_of(comparison));
    return page;
}

Page tp_comparison_page(const TpCase& layer, const std::vector<Comparison>& parts) {
    Page page{fmt::format("Tensor-parallel sub-layers on {}", layer.machine_name),
              lines_of(head_text(layer)),
              {}};
    if (parts.size() > 1) page.sections.push_back(systems_section(sum_of(parts), "All sub-layers"));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string name(name_of(layer.parts[i]));
        page.sections.push_back(systems_section(parts[i], "Sub-layer " + name));
        add_if_any(page, traffic_section(parts[i]));
        add_if_any(page, timeline_section(parts[i]));
        add_if_any(page, units_section(parts[i]));
    }
    for (const std::string& text :
         {left_out_text(parts.front().left_out), tp_checks_text(layer, sum_of(parts))})
        page.sections.front().notes.push_back(text);
    page.configuration = configuration_of(layer.machine, layer.model, specs_of(parts.front()));
    return page;
}

}  // namespace moehub
