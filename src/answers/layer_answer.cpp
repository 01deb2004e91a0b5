#include "answers/layer_answer.hpp"

#include "report/number.hpp"
#include "study/collective_names.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr int kMostMapped = 128;  ///< GPUs of a map from GPU to GPU

double megabytes(Bytes bytes) {
    return static_cast<double>(bytes) / 1e6;
}

std::vector<std::string> names_of(const Comparison& comparison) {
    std::vector<std::string> names;
    for (const ComparisonRow& row : comparison.rows) names.push_back(row.result.system);
    return names;
}

std::string shared_experts(const Model& model) {
    return model.shared_experts == 0 ? "" : fmt::format(" + {} shared", model.shared_experts);
}

std::string routing_words(const LayerCase& layer) {
    if (layer.trace_layer)
        return fmt::format("{}, layer {}", layer.routing_name, *layer.trace_layer);
    return fmt::format("{} routing, seed {}", layer.routing_name, layer.seed.value_or(0));
}

/// Options and settings that are not as usual, in words.
std::vector<std::string> changes(const LayerCase& layer) {
    const LayerOptions& options = layer.options;
    std::vector<std::string> list = layer.settings;
    const Software& software = layer.software;
    if (software.host)
        list.push_back(
            fmt::format("host {}", *software.host == HostMode::eager ? "eager" : "graph"));
    if (software.fused_activation.value_or(false)) list.push_back("fused activation");
    if (software.fp8.value_or(false)) list.push_back("FP8 experts and rows");
    if (options.pass == Pass::backward) list.push_back("backward pass");
    if (options.tensor_parallel > 1)
        list.push_back(fmt::format("tensor parallel {}", options.tensor_parallel));
    if (layer.layout)
        list.push_back(fmt::format("layout {}, MoE layer {}{} (layer {} of the model)",
                                   layer.layout->file, layer.layout->layer,
                                   layer.layout->mean ? ", nearest to the mean of all" : "",
                                   layer.layout->number));
    if (layer.replicas > 0)
        list.push_back(fmt::format(
            "{} redundant experts, {}", grouped(layer.replicas),
            options.replicas == ReplicaPolicy::round_robin ? "round-robin" : "least-loaded"));
    if (options.region_rows > 0)
        list.push_back(fmt::format("regions of {} rows", grouped(options.region_rows)));
    if (options.page_rows > 0)
        list.push_back(fmt::format("pages of {} rows", grouped(options.page_rows)));
    if (options.page_pool > 0)
        list.push_back(
            fmt::format("page pool of {}", byte_size(static_cast<double>(options.page_pool))));
    return list;
}

std::string parts_words(const std::vector<SubLayer>& parts) {
    if (parts.size() == 1)
        return fmt::format("sub-layer {} ({})", name_of(parts.front()), words_of(parts.front()));
    std::vector<std::string_view> names;
    for (const SubLayer part : parts) names.push_back(name_of(part));
    return fmt::format("sub-layers {}", fmt::join(names, ", "));
}

/// What was simulated of a model.
std::string layer_words(const LayerCase& layer) {
    if (!layer.is_moe()) return parts_words(layer.parts);
    const Model& model = layer.input.model;
    return fmt::format("top-{} of {} experts{} ({}), {}", model.top_k, model.experts,
                       shared_experts(model), model.gated ? "gated" : "not gated",
                       routing_words(layer));
}

/// What the books of a run say of the rows.
std::string checked_words(const LayerCase& layer, const LayerResult& result) {
    if (layer.is_moe())
        return fmt::format(
            "each of {} rows reached its expert once and its result came back once; regions of "
            "hubs have no holes",
            grouped(result.rows));
    const auto only = [&](SubLayer part) {
        return layer.parts.size() == 1 && layer.parts.front() == part;
    };
    const std::string rows = grouped(layer.tokens);
    if (only(SubLayer::attention_in))
        return fmt::format("each GPU read each of {} rows once", rows);
    if (only(SubLayer::attention_out))
        return fmt::format(
            "each of {} rows came to its GPU as the sum of all GPUs' partial sums, each once",
            rows);
    return fmt::format(
        "each GPU read each of {} rows once, as the sum of all GPUs' partial sums, each once",
        rows);
}

std::string verified_words(const Comparison& comparison) {
    double error = 0;
    for (const ComparisonRow& row : comparison.rows)
        error = std::max(error, row.result.largest_error);
    return fmt::format(
        "Verified: outputs equal the reference layer's, largest relative error {:.2g}.", error);
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

/// Units whose names do not speak for themselves.
constexpr struct {
    std::string_view unit;
    std::string_view title;
} kTitles[] = {
    {"rpm", "Runtime Packet Manager, producer's hub: shapes stores into packets"},
    {"aau", "Address Allocation Unit, consumer's hub: gives each row its row number"},
    {"dam", "Data Availability Manager, consumer's hub: releases thread blocks"},
    {"al", "AL table and TLB, consumer's hub: where each token's row lies"},
    {"ts", "TS table, consumer's hub: tiles of rows that have come"},
    {"or", "OR table, at home: tokens whose experts are through"},
    {"merge", "merge unit, switch's port: one request for all GPUs that ask for the same"},
    {"memory", "regions that receive rows"},
};

/// "rpm: Runtime Packet Manager, …", of those that counted something.
template <class List>
std::vector<Note> unit_notes(const List& list, Reader reader) {
    std::vector<Note> notes;
    for (const auto& [unit, title] : kTitles)
        if (std::any_of(list.begin(), list.end(),
                        [&, name = std::string_view(unit)](const auto& one) {
                            return one.statistic.unit == name;
                        }))
            notes.push_back({fmt::format("{}: {}", unit, title), reader});
    return notes;
}

/// What every system counts.
std::vector<Statistic> of_layer(const LayerResult& result, const std::string& rows) {
    const auto number = [](auto value) { return static_cast<double>(value); };
    return {
        {"layer", "GEMM-1_end_us", to_us(result.first_gemm),
         "from the start until the last GPU is through"},
        {"layer", "compute_us", to_us(result.breakdown.compute),
         "of the GPU that computes longest"},
        {"layer", "rows", number(result.rows), rows},
        {"layer", "payload_bytes", number(result.payload), "that crossed between GPUs"},
        {"layer", "packets", number(result.packets), "that reached a GPU, acknowledgements aside"},
        {"layer", "events", number(result.events), "that the simulator handled"},
    };
}

/// A statistic's name in words and its value with its unit, which the name's ending says.
struct StatisticWords {
    std::string name;
    std::string value;
};

StatisticWords in_words(const Statistic& one) {
    std::string name = one.name;
    std::string value = one.value == std::round(one.value) && std::abs(one.value) < 1e15
                            ? grouped(static_cast<std::int64_t>(one.value))
                            : significant(one.value);
    const auto without_ending = [&name](std::string_view ending) {
        if (!name.ends_with(ending)) return false;
        name.resize(name.size() - ending.size());
        return true;
    };
    if (without_ending("_bytes")) value = byte_size(one.value);
    if (without_ending("_us")) value = duration(one.value * 1e-6);
    std::replace(name.begin(), name.end(), '_', ' ');
    return {name, value};
}

struct CountedBy {
    std::string part;
    std::string system;
    Statistic statistic;
};

/// Sorts by unit, in the order in which units are first found.
void sort_by_unit(std::vector<CountedBy>& list) {
    std::vector<std::string> units;
    const auto place = [&units](const std::string& unit) {
        const auto found = std::find(units.begin(), units.end(), unit);
        const auto at = found - units.begin();
        if (found == units.end()) units.push_back(unit);
        return at;
    };
    for (const CountedBy& one : list) place(one.statistic.unit);
    std::stable_sort(list.begin(), list.end(), [&](const CountedBy& a, const CountedBy& b) {
        return place(a.statistic.unit) < place(b.statistic.unit);
    });
}

Table statistics_table(const std::vector<CountedBy>& list, const std::string& key, bool parts) {
    using Row = CountedBy;
    return table_of<Row>(key, "",
                         {{{"", parts ? "sub_layer" : "", kHidden}, &Row::part},
                          {hidden("system"), &Row::system},
                          {hidden("unit"), [](const Row& row) { return row.statistic.unit; }},
                          {hidden("name"), [](const Row& row) { return row.statistic.name; }},
                          {hidden("value"), [](const Row& row) { return row.statistic.value; }},
                          {hidden("meaning"), [](const Row& row) { return row.statistic.doc; }}},
                         list);
}
}  // namespace

std::vector<std::string> lead_of(const LayerCase& layer) {
    std::vector<std::string> lead{
        fmt::format("{} on {}: {}, {} tokens, {}, {} grain", layer.model_name, layer.machine_name,
                    several(layer.input.machine.gpus(), "GPU"), grouped(layer.tokens),
                    layer_words(layer), name_of(layer.options.grain))};
    if (const auto all = changes(layer); !all.empty())
        lead.push_back(fmt::format("with {}", fmt::join(all, ", ")));
    if (!layer.idle.empty()) lead.push_back(layer.idle);
    return lead;
}

Json facts_of(const LayerCase& layer) {
    const LayerOptions& options = layer.options;
    const Model& model = layer.input.model;
    Json json;
    json["layer_type"] = layer.is_moe() ? "moe" : "tp";
    json["machine"] = layer.machine_name;
    json["model"] = layer.model_name;
    json["set"] = layer.settings;
    json["gpus"] = layer.input.machine.gpus();
    json["tokens"] = layer.tokens;
    if (!layer.is_moe()) {
        json["grain"] = name_of(options.grain);
        json["sub_layer"] = Json::array();
        for (const SubLayer part : layer.parts) json["sub_layer"].push_back(name_of(part));
        return json;
    }
    json["experts"] = model.experts;
    json["top_k"] = model.top_k;
    json["gated"] = model.gated;
    json["routing"] = layer.routing_name;
    json["seed"] = or_null(layer.seed);
    json["layer"] = or_null(layer.trace_layer);
    json["grain"] = name_of(options.grain);
    json["pass"] = options.pass == Pass::forward ? "forward" : "backward";
    json["tensor_parallel"] = options.tensor_parallel;
    json["layout"] = layer.layout ? Json{{"file", layer.layout->file},
                                         {"layer", layer.layout->layer},
                                         {"layer_of_model", layer.layout->number},
                                         {"mean", layer.layout->mean}}
                                  : Json(nullptr);
    json["replicas"] = layer.replicas;
    json["replica_policy"] =
        options.replicas == ReplicaPolicy::round_robin ? "round-robin" : "least-loaded";
    json["region_rows"] = options.region_rows;
    json["page_rows"] = options.page_rows;
    json["page_pool_bytes"] = options.page_pool;
    return json;
}

Table results_table(const std::string& key, const Comparison& whole,
                    const std::vector<NamedComparison>& parts) {
    using Row = ComparisonRow;
    const bool several = whole.rows.size() > 1;
    const bool ideal = several && whole.rows.front().share_of_ideal.has_value();
    const bool sums = parts.size() > 1;
    const bool moe = !sums && parts.front().name.empty();
    const Show unless_one = several ? kTimes : kHidden;
    const Show if_moe = moe ? kTenths : kHidden;
    const auto us = [](Ps LayerResult::*time) {
        return [time](const Row& row) { return to_us(row.result.*time); };
    };
    const auto part_us = [](Ps Breakdown::*time) {
        return [time](const Row& row) { return to_us(row.result.breakdown.*time); };
    };
    std::vector<ColumnOf<Row>> columns{
        {{"system", "system"}, [](const Row& row) { return row.result.system; }},
        {{"software", "", moe ? kText : kHidden, 6},
         [](const Row& row) {
             return software_words(row.system) + (row.result.host_waits ? ", waits" : "");
         }},
        {hidden("software.host"),
         [](const Row& row) { return row.system.host == HostMode::eager ? "eager" : "graph"; }},
        {hidden("software.host_waits"), [](const Row& row) { return row.result.host_waits; }},
        {hidden("software.fused_activation"),
         [](const Row& row) { return row.system.fused_activation; }},
        {hidden("software.expert_format"),
         [](const Row& row) { return name_of(row.system.expert_format); }},
        {hidden("software.dispatch_element_bytes"),
         [](const Row& row) { return row.system.dispatch_element; }}};
    if (sums)
        for (const NamedComparison& part : parts)
            columns.push_back(
                {{part.name + " µs", "sub_layers_us." + part.name, kTenths},
                 [&part, &whole](const Row& row) {
                     const auto at = &row - whole.rows.data();
                     return to_us(part.comparison.rows[static_cast<std::size_t>(at)].result.time);
                 }});
    append(columns,
           {
               {{sums ? "sum µs" : "time µs", "time_us", kTenths}, us(&LayerResult::time)},
               {{"vs " + whole.baseline, "speedup", unless_one}, &Row::speedup},
               {{"of ideal", "share_of_ideal", ideal ? kPercent : kHidden},
                [](const Row& row) { return or_null(row.share_of_ideal); }},
               {hidden("compute_us"), part_us(&Breakdown::compute)},
               {{"exposed µs", "communication_us", kTenths, 1}, part_us(&Breakdown::communication)},
               {{"host µs", "host_us", if_moe, 2}, part_us(&Breakdown::host)},
               {hidden("first_gemm_us"), us(&LayerResult::first_gemm)},
               {hidden("dispatch_us"), us(&LayerResult::dispatch)},
               {hidden("combine_us"), us(&LayerResult::combine)},
               {{"up MB", "up_bytes", kMegabytes, 4},
                [](const Row& row) { return row.result.bytes_up; }},
               {{"down MB", "down_bytes", kMegabytes, 4},
                [](const Row& row) { return row.result.bytes_down; }},
               {hidden("payload_bytes"), [](const Row& row) { return row.result.payload; }},
               {{"SM busy", "sm_busy", kPercent, 5},
                [](const Row& row) { return row.result.sm_busy; }},
               {hidden("tensor_busy"), [](const Row& row) { return row.result.tensor_busy; }},
               {hidden("rows"), [](const Row& row) { return row.result.rows; }},
               {hidden("packets"), [](const Row& row) { return row.result.packets; }},
               {hidden("events"), [](const Row& row) { return row.result.events; }},
               {hidden("verified"), [](const Row& row) { return row.result.verified; }},
               {hidden("largest_error"),
                [](const Row& row) {
                    return value_if(row.result.verified, row.result.largest_error);
                }},
           });
    return table_of<Row>(key, "", columns, whole.rows);
}

Table sub_layers_table(const std::string& key, const std::vector<NamedComparison>& parts) {
    Table all{key, "", {hidden("sub_layer")}, {}};
    for (const NamedComparison& part : parts) {
        const Table one = results_table("", part.comparison, {part});
        if (all.columns.size() == 1)
            all.columns.insert(all.columns.end(), one.columns.begin(), one.columns.end());
        for (std::vector<Json> row : one.rows) {
            row.insert(row.begin(), part.name);
            all.rows.push_back(std::move(row));
        }
    }
    return all;
}

Section systems_section(const std::string& heading, Table table, const Comparison& comparison) {
    BarChart times = bars_of(table, "Where the time goes", "system",
                             {"compute_us", "communication_us", "host_us"}, "µs");
    times.stacked = true;
    times.series[0].name = "compute";
    times.series[1].name = "exposed communication";
    times.series[2].name = "host (launches, synchronisation)";
    for (std::size_t i = 0; i < 3; ++i)
        times.series[i].mark = std::vector<std::string>{"█", "▒", "·"}[i];
    Section section{heading, {}, {table, std::move(times)}};
    section.notes = {
        {"Compute: some kernel ran on the GPU that computes longest. Exposed communication: none "
         "ran, and rows were underway. Host: neither.",
         Reader::page}};
    if (comparison.rows.size() > 1)
        section.blocks.push_back(
            system_bars(table, "Speed-up over " + comparison.baseline, "speedup", "×"));
    return section;
}

Section traffic_section(const NamedComparison& one) {
    const Comparison& comparison = one.comparison;
    const auto bytes = [&](std::string name, Bytes LayerResult::*member) {
        ChartSeries series{std::move(name), {}};
        for (const ComparisonRow& row : comparison.rows)
            series.values.emplace_back(megabytes(row.result.*member));
        return series;
    };
    Section section{
        one.name.empty() ? "Traffic" : one.name + ": traffic",
        {},
        {BarChart{"On the wires, headers included, and payload between GPUs",
                  "MB",
                  names_of(comparison),
                  {bytes("up", &LayerResult::bytes_up), bytes("down", &LayerResult::bytes_down),
                   bytes("payload", &LayerResult::payload)}}}};
    section.notes = {
        {"Up: from GPUs to switches and NICs; down: from them to GPUs.", Reader::page}};
    HeatChart map = traffic_map(comparison);
    if (map.layers.empty()) return section;
    if (map.layers.size() > 1)
        section.notes.push_back({"Colours of the map have a scale for each system.", Reader::page});
    section.blocks.push_back(std::move(map));
    return section;
}

Section timeline_section(const NamedComparison& one) {
    std::vector<std::string> notes;
    TimelineChart chart = timeline_chart(one.comparison, notes);
    Section section{one.name.empty() ? "Over time" : one.name + ": over time"};
    if (chart.systems.empty()) return section;
    for (const std::string& note : notes) section.notes.push_back({note, Reader::page});
    section.blocks.push_back(std::move(chart));
    return section;
}

Section units_section(const std::string& key, const std::vector<NamedComparison>& parts,
                      const std::string& rows, Reader reader) {
    std::vector<CountedBy> counted, shown_ones;
    for (const auto& [name, comparison] : parts)
        for (const ComparisonRow& row : comparison.rows) {
            for (const Statistic& one : of_layer(row.result, rows))
                shown_ones.push_back({name, row.result.system, one});
            for (const Statistic& one : row.result.statistics) {
                counted.push_back({name, row.result.system, one});
                shown_ones.push_back(counted.back());
            }
        }
    sort_by_unit(shown_ones);
    using Row = CountedBy;
    const Table people = table_of<Row>(
        "", "",
        {{{parts.size() > 1 ? "sub-layer" : "", "", parts.size() > 1 ? kOnce : kHidden},
          &Row::part},
         {{"unit", "", kOnce}, [](const Row& row) { return row.statistic.unit; }},
         {{"counted", ""}, [](const Row& row) { return in_words(row.statistic).name; }},
         {{"system", ""}, &Row::system},
         {{"value", "", kSignificant},
          [](const Row& row) { return in_words(row.statistic).value; }},
         {{"meaning", "", kProse}, [](const Row& row) { return row.statistic.doc; }}},
        shown_ones);
    return {"What units counted",
            {},
            {{statistics_table(counted, key, parts.size() > 1), Reader::program},
             {pivoted(people, 3, 3, 4), reader}},
            unit_notes(shown_ones, reader)};
}

std::string software_words(const Comparison& comparison) {
    const auto any = [&](auto property) {
        return std::any_of(comparison.rows.begin(), comparison.rows.end(), property);
    };
    std::string out =
        "Software: a host issues operators one by one (eager) or kernels follow one another by "
        "themselves (graph)";
    if (any([](const ComparisonRow& row) { return row.system.fused_activation; }))
        out += "; fused: no kernel for the activation";
    if (any([](const ComparisonRow& row) { return row.result.host_waits; }))
        out += "; waits: the host must know counts of rows before it goes on";
    if (any([](const ComparisonRow& row) {
            return row.system.dispatch_element <= 1 && !row.system.narrow_experts();
        }))
        out += "; FP8 rows: sent in FP8, computed in BF16";
    out += ".";
    if (comparison.other_ideal)
        out += fmt::format(" Systems in FP8 stand beside an ideal in FP8: {} µs.",
                           tenths(to_us(*comparison.other_ideal)));
    return out;
}

Table left_out_table(const std::vector<LeftOut>& systems) {
    return table_of<LeftOut>(
        "left_out", "",
        {{hidden("system"), &LeftOut::system}, {hidden("reason"), &LeftOut::reason}}, systems);
}

std::vector<std::string> left_out_sentences(const std::vector<LeftOut>& systems) {
    std::vector<std::pair<std::string, std::string>> lines;  // reason, systems
    for (const LeftOut& one : systems) {
        const auto same = std::find_if(lines.begin(), lines.end(),
                                       [&](const auto& line) { return line.first == one.reason; });
        if (same == lines.end())
            lines.emplace_back(one.reason, one.system);
        else
            same->second += ", " + one.system;
    }
    std::vector<std::string> sentences;
    for (const auto& [reason, names] : lines)
        sentences.push_back(fmt::format("Left out: {}: {}", names, reason));
    return sentences;
}

std::vector<std::string> checks_of(const LayerCase& layer, const Comparison& comparison) {
    const LayerResult& first = comparison.rows.front().result;
    std::vector<std::string> checks{
        fmt::format("Checked{}: {}.", comparison.rows.size() > 1 ? " in every system" : "",
                    checked_words(layer, first))};
    if (first.verified) checks.push_back(verified_words(comparison));
    return checks;
}

Configuration configuration_of(const Machine& machine, const Model& model,
                               const std::vector<SystemSpec>& systems) {
    Configuration list;
    add_configuration(list, "Machine", machine);
    add_configuration(list, "Model", model);
    for (const SystemSpec& system : systems) add_configuration(list, "System", system);
    return list;
}

}  // namespace moehub
