// What steps of training are like: their columns, where time and memory go.
#include "answers/plan_answers.hpp"
#include "report/number.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace moehub {
namespace {

using StepColumn = ColumnOf<TrainingStep>;

constexpr double kNothing = 1e-6;  ///< a share or seconds that rounding leaves

/// What a part of a step is, as bars in terminals show it.
struct PartKind {
    const char* words;
    const char* mark;
};
constexpr std::array<PartKind, 5> kPartKinds{{{"compute", "█"},
                                              {"recomputed", "▓"},
                                              {"communication", "▒"},
                                              {"waiting", "░"},
                                              {"other", "·"}}};

template <class Whole>
struct PartOf {
    const char* words;
    const char* key;
    double Whole::*value;
    std::size_t kind = 0;  ///< place in kPartKinds
};

constexpr std::array<PartOf<StepParts>, 16> kTimeParts{{
    {"attention", "attention", &StepParts::attention},
    {"dense FFNs", "dense", &StepParts::dense},
    {"routed experts", "experts", &StepParts::experts},
    {"embedding, head", "head", &StepParts::head},
    {"small kernels", "small", &StepParts::small},
    {"recomputed", "recomputed", &StepParts::recomputed, 1},
    {"tensor parallel", "tp", &StepParts::tp, 2},
    {"context parallel", "cp", &StepParts::cp, 2},
    {"expert parallel", "ep", &StepParts::ep, 2},
    {"between stages", "pp", &StepParts::pp, 2},
    {"data parallel", "dp", &StepParts::dp, 2},
    {"pipeline bubble", "bubble", &StepParts::bubble, 3},
    {"expert imbalance", "imbalance", &StepParts::imbalance, 3},
    {"optimizer", "optimizer", &StepParts::optimizer, 4},
    {"offload", "offload", &StepParts::offload, 4},
    {"host", "host", &StepParts::host, 4},
}};

constexpr std::array<PartOf<StepMemory>, 7> kMemoryParts{{
    {"weights", "weights", &StepMemory::weights},
    {"gradients", "gradients", &StepMemory::gradients},
    {"optimizer states", "optimizer", &StepMemory::optimizer},
    {"activations", "activations", &StepMemory::activations},
    {"buffers", "buffers", &StepMemory::buffers},
    {"workspace", "workspace", &StepMemory::workspace},
    {"margin", "margin", &StepMemory::margin},
}};

// Columns

StepColumn layout_column(const char* words) {
    return {{words, "layout.text", kProse},
            [](const TrainingStep& step) { return to_text(step.layout); }};
}
const StepColumn kMfu{{"MFU", "mfu", kPercent}, &TrainingStep::mfu};
const StepColumn kTokens{{"tok/s/GPU", "tokens_per_second_per_gpu", kWhole},
                         &TrainingStep::tokens_per_second};
const StepColumn kSeconds{{"step s", "step_seconds", kSignificant}, &TrainingStep::seconds};
const StepColumn kSum{{"GB", "memory_bytes.sum", kGigabytes},
                      [](const TrainingStep& step) { return step.memory.sum(); }};

StepColumn for_programs(StepColumn column) {
    column.column.show = kHidden;
    return column;
}

/// Its last word says no more than the column's title.
std::string limit_words(const TrainingStep& step) {
    constexpr std::string_view kEnd = " communication";
    std::string limit = step.limit;
    if (limit.ends_with(kEnd)) limit.resize(limit.size() - kEnd.size());
    return limit;
}

Json stages_json(const TrainingStep& step) {
    Json stages = Json::array();
    for (const StageTime& one : step.stages)
        stages.push_back({{"stage", one.stage},
                          {"piece", one.piece},
                          {"forward_seconds", one.forward},
                          {"backward_seconds", one.backward}});
    return stages;
}

/// What programs get besides of every step; charts take parts from there.
std::vector<StepColumn> other_columns() {
    std::vector<StepColumn> columns;
    const auto add = [&columns](const std::string& key, auto value) {
        columns.push_back({{key, key, kHidden}, value});
    };
    const auto add_parts = [&columns](const std::string& front, const auto& parts, auto whole,
                                      double scale) {
        for (const auto& part : parts)
            columns.push_back(
                {{part.words, front + part.key, scaled(kHidden, scale)},
                 [&part, whole](const TrainingStep& step) { return step.*whole.*part.value; }});
    };
    const auto degree = [](int ParallelLayout::*member) {
        return [member](const TrainingStep& step) { return step.layout.*member; };
    };
    const auto name = [](auto ParallelLayout::*member) {
        return [member](const TrainingStep& step) { return name_of(step.layout.*member); };
    };
    add("layout.tp", degree(&ParallelLayout::tp));
    add("layout.cp", degree(&ParallelLayout::cp));
    add("layout.pp", degree(&ParallelLayout::pp));
    add("layout.vpp", degree(&ParallelLayout::vpp));
    add("layout.ep", degree(&ParallelLayout::ep));
    add("layout.etp", degree(&ParallelLayout::etp));
    add("layout.micro_batch", degree(&ParallelLayout::micro_batch));
    add("layout.sharding", name(&ParallelLayout::sharding));
    add("layout.recompute", name(&ParallelLayout::recompute));
    add("layout.offload", name(&ParallelLayout::offload));
    add("layout.overlap", name(&ParallelLayout::overlap));
    add("layout.system", [](const TrainingStep& step) { return step.layout.system; });
    add("flops_per_second_per_gpu", [](const TrainingStep& step) { return 1e12 * step.tflops(); });
    add("micro_batches", [](const TrainingStep& step) { return step.micro_batches; });
    add("limit", [](const TrainingStep& step) { return step.limit; });
    add_parts("parts_seconds.", kTimeParts, &TrainingStep::parts, 1);
    add_parts("memory_bytes.", kMemoryParts, &TrainingStep::memory, 1e-9);
    add("host_bytes", [](const TrainingStep& step) { return step.memory.host; });
    add("fits", [](const TrainingStep& step) { return step.fits; });
    add("stages", stages_json);
    return columns;
}

Table steps_table(std::string key, std::vector<StepColumn> columns, const Steps& steps) {
    append(columns, other_columns());
    return table_of<TrainingStep>(std::move(key), "", columns, steps);
}

/// A table's columns whose keys begin so, stacked; those that are nothing in all are left out.
BarChart parts_chart(const Table& table, const std::string& title, const std::string& category,
                     std::string_view front, const std::string& unit) {
    std::vector<std::string> keys;
    for (const Column& column : table.columns)
        if (column.key.starts_with(front) && !column.is_shown()) keys.push_back(column.key);
    BarChart chart = bars_of(table, title, category, keys, unit);
    chart.stacked = true;
    std::erase_if(chart.series, [](const ChartSeries& one) {
        return std::all_of(one.values.begin(), one.values.end(),
                           [](const auto& value) { return *value < kNothing; });
    });
    return chart;
}

using Shares = std::vector<std::pair<const char*, double>>;

template <class Whole, std::size_t count>
Shares shares_of(const std::array<PartOf<Whole>, count>& parts, const Whole& whole, double least) {
    Shares shares;
    for (const auto& part : parts)
        if (const double value = whole.*part.value; value > least)
            shares.emplace_back(part.words, value);
    return shares;
}

/// Parts of a whole, with bars; the whole itself has none.
Table shares_table(const char* words, Column value, const Shares& shares, double whole) {
    Table table{
        "", "", {{words}, std::move(value), {"share", "", kPercent}, {"", "", bar_of(32)}}, {}};
    for (const auto& [name, part] : shares)
        table.rows.push_back({name, part, part / whole, value_if(part != whole, part / whole)});
    return table;
}

Table memory_table(const TrainingStep& step) {
    Shares shares = shares_of(kMemoryParts, step.memory, 0);
    shares.emplace_back("in all", step.memory.sum());
    shares.emplace_back("it has", step.capacity);
    return shares_table("memory a GPU", {"GB", "", kGigabytes}, shares, step.capacity);
}

}  // namespace

Table layouts_table(const std::string& key, const Steps& steps) {
    return steps_table(
        key,
        {{{"", "rank", kWhole}, [rank = 0](const TrainingStep&) mutable { return ++rank; }},
         layout_column("parallel layout"),
         kMfu,
         kTokens,
         kSeconds,
         kSum,
         {{"limited by", "", kText, 1}, [](const TrainingStep& one) { return limit_words(one); }}},
        steps);
}

Table breakdown_table(const Steps& steps) {
    Table table{"", "", {{"share of the step"}}, {}};
    for (std::size_t i = 0; i < steps.size(); ++i)
        table.columns.push_back({fmt::format("{}", i + 1), "", kPercent});
    for (const auto& part : kTimeParts) {
        std::vector<Json> cells{part.words};
        bool any = false;
        for (const TrainingStep& step : steps) {
            const double share = step.parts.*part.value / step.seconds;
            Json& cell = cells.emplace_back();
            if (share < kNothing) continue;
            cell = share;
            any = true;
        }
        if (any) table.rows.push_back(std::move(cells));
    }
    return table;
}

BarChart time_chart(const Table& table, const std::string& title, const std::string& category) {
    return parts_chart(table, title, category, "parts_seconds.", "s");
}

BarChart kinds_chart(const Steps& steps) {
    BarChart chart{"A step's time", "s", {}, {}, true};
    for (const PartKind& kind : kPartKinds) chart.series.push_back({kind.words, {}, kind.mark});
    for (const TrainingStep& step : steps) {
        chart.categories.push_back(fmt::format("{}", chart.categories.size() + 1));
        for (ChartSeries& series : chart.series) series.values.emplace_back(0.0);
        for (const auto& part : kTimeParts)
            *chart.series[part.kind].values.back() += step.parts.*part.value;
    }
    return chart;
}

Table seconds_table(const TrainingStep& step) {
    Shares shares = shares_of(kTimeParts, step.parts, kNothing * step.seconds);
    shares.emplace_back("in all", step.seconds);
    return shares_table("a step", {"s", "", fixed(3)}, shares, step.seconds);
}

Section memory_section(const TrainingStep& step, const Table& all, const std::string& category,
                       Reader table) {
    BarChart chart = parts_chart(
        all, fmt::format("Memory of the fullest GPU, which has {}", byte_size(step.capacity)),
        category, "memory_bytes.", "GB");
    Section section{"Memory", {}, {{memory_table(step), table}, {std::move(chart), Reader::page}}};
    if (step.memory.host > 0)
        section.notes.push_back(
            {fmt::format("{} of the host's memory besides.", byte_size(step.memory.host)), table});
    return section;
}

Section systems_section(const Steps& steps) {
    const TrainingStep& first = steps.front();
    const auto cut = [](const TrainingStep& step) {
        ParallelLayout layout = step.layout;
        layout.system.clear();
        return to_text(layout);
    };
    std::vector<StepColumn> columns{
        {{"system", ""}, [](const TrainingStep& step) { return step.layout.system; }},
        {{"its best parallel layout", "", kProse}, cut},
        for_programs(layout_column("")),
        kMfu,
        for_programs(kTokens),
        kSeconds,
        for_programs(kSum),
        {{"EP exposed", "", kPercent},
         [](const TrainingStep& step) { return step.parts.ep / step.seconds; }},
        {{"vs " + first.layout.system, "", kTimes},
         [&first](const TrainingStep& step) { return first.seconds / step.seconds; }}};
    Table table = steps_table("systems", std::move(columns), steps);
    if (steps.size() < 2) return {"", {}, {{std::move(table), Reader::program}}};
    BarChart chart = time_chart(table, "A step under each system, with its best parallel layout",
                                "layout.system");
    return {"Systems", {}, {std::move(table), {std::move(chart), Reader::page}}};
}

Section front_section(const Steps& front) {
    Table table = steps_table(
        "front",
        {kSum, kMfu, kSeconds, for_programs(kTokens), layout_column("less memory, at what speed")},
        front);
    if (front.size() < 2) return {"", {}, {{std::move(table), Reader::program}}};
    LineChart chart{"Speed and memory: no other layout is faster with as little",
                    {"GB of a GPU", false, false},
                    {"MFU, %", false, false},
                    {{"front", {}}}};
    for (const TrainingStep& step : front)
        chart.series.front().points.push_back(
            {step.memory.sum() / 1e9, 100 * step.mfu, to_text(step.layout)});
    return {"Less memory, at what speed", {}, {std::move(chart), std::move(table)}};
}

}  // namespace moehub
