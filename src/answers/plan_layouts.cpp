// Parallel layouts of a training run: the fastest, where a step's time and a GPU's memory go, what
// less memory costs; or one of them in full.
#include "answers/machine_options.hpp"
#include "answers/plan_answers.hpp"
#include "plan/units.hpp"
#include "report/number.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

using Steps = std::vector<TrainingStep>;
using StepColumn = ColumnOf<TrainingStep>;

constexpr std::size_t kBreakdowns = 3;             ///< layouts whose parts are shown
constexpr double kNothing = 1e-6;                  ///< a share or seconds that rounding leaves
constexpr int kPicture = 100, kLeastPicture = 72;  ///< columns of a pipeline
/// What a part of a step is, as bars in terminals show it.
struct PartKind {
    const char* words;
    const char* mark;
};
constexpr std::array<PartKind, 5> kKinds{{{"compute", "█"},
                                          {"recomputed", "▓"},
                                          {"communication", "▒"},
                                          {"waiting", "░"},
                                          {"other", "·"}}};

template <class Whole>
struct PartOf {
    const char* words;
    const char* key;
    double Whole::*value;
    std::size_t kind = 0;  ///< of kKinds
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
const StepColumn kMfu{{"MFU", "mfu", kPercent}, [](const TrainingStep& step) { return step.mfu; }};
const StepColumn kTokens{{"tok/s/GPU", "tokens_per_second_per_gpu", kWhole},
                         [](const TrainingStep& step) { return step.tokens_per_second; }};
const StepColumn kSeconds{{"step s", "step_seconds", kSignificant},
                          [](const TrainingStep& step) { return step.seconds; }};
const StepColumn kSum{{"GB", "memory_bytes.sum", kGigabytes},
                      [](const TrainingStep& step) { return step.memory.sum(); }};

StepColumn hidden(StepColumn column) {
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
    for (StepColumn& column : other_columns()) columns.push_back(std::move(column));
    return table_of<TrainingStep>(std::move(key), "", columns, steps);
}

/// Fastest first, with numbers that charts repeat.
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

// Where time and memory go

/// Shares of the first steps, a column each.
Table breakdown_table(const Steps& steps) {
    Table table{"", "", {{"share of the step"}}, {}};
    for (std::size_t i = 0; i < steps.size(); ++i)
        table.columns.push_back({fmt::format("{}", i + 1), "", kPercent});
    for (const auto& part : kTimeParts) {
        std::vector<Json> cells{part.words};
        bool any = false;
        for (const TrainingStep& step : steps) {
            const double share = step.parts.*part.value / step.seconds;
            cells.push_back(share < kNothing ? Json(nullptr) : Json(share));
            any = any || share >= kNothing;
        }
        if (any) table.rows.push_back(std::move(cells));
    }
    return table;
}

/// A table's columns whose keys begin so, stacked; those that are nothing in all are left out.
BarChart parts_chart(const Table& table, const std::string& title, const std::string& category,
                     std::string_view front) {
    std::vector<std::string> keys;
    for (const Column& column : table.columns)
        if (column.key.starts_with(front) && !column.is_shown()) keys.push_back(column.key);
    BarChart chart = bars_of(table, title, category, keys);
    chart.stacked = true;
    std::erase_if(chart.series, [](const ChartSeries& one) {
        return std::all_of(one.values.begin(), one.values.end(),
                           [](const auto& value) { return *value < kNothing; });
    });
    return chart;
}

BarChart time_chart(const Table& table, const std::string& title, const std::string& category) {
    BarChart chart = parts_chart(table, title, category, "parts_seconds.");
    chart.unit = "s";
    return chart;
}

/// The same for terminals, by what parts are.
BarChart kinds_chart(const Steps& steps) {
    BarChart chart{"A step's time", "s", {}, {}, true};
    for (const PartKind& kind : kKinds) chart.series.push_back({kind.words, {}, kind.mark});
    for (const TrainingStep& step : steps) {
        chart.categories.push_back(fmt::format("{}", chart.categories.size() + 1));
        for (ChartSeries& series : chart.series) series.values.emplace_back(0.0);
        for (const auto& part : kTimeParts)
            *chart.series[part.kind].values.back() += step.parts.*part.value;
    }
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
        table.rows.push_back(
            {name, part, part / whole, part == whole ? Json(nullptr) : Json(part / whole)});
    return table;
}

Table seconds_table(const TrainingStep& step) {
    Shares shares = shares_of(kTimeParts, step.parts, kNothing * step.seconds);
    shares.emplace_back("in all", step.seconds);
    return shares_table("a step", {"s", "", fixed(3)}, shares, step.seconds);
}

Table memory_table(const TrainingStep& step) {
    Shares shares = shares_of(kMemoryParts, step.memory, 0);
    shares.emplace_back("in all", step.memory.sum());
    shares.emplace_back("it has", step.capacity);
    return shares_table("memory a GPU", {"GB", "", kGigabytes}, shares, step.capacity);
}

/// Of the first step; the chart has all of the table's.
Section memory_section(const TrainingStep& step, const Table& all, const std::string& category,
                       Reader table) {
    BarChart chart = parts_chart(
        all, fmt::format("Memory of the fullest GPU, which has {}", byte_size(step.capacity)),
        category, "memory_bytes.");
    chart.unit = "GB";
    Section section{"Memory", {}, {{memory_table(step), table}, {std::move(chart), Reader::page}}};
    if (step.memory.host > 0)
        section.notes.push_back(
            {fmt::format("{} of the host's memory besides.", byte_size(step.memory.host)), table});
    return section;
}

// What a search found

/// What each system makes of the run with the layout that suits it best.
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
        hidden(layout_column("")),
        kMfu,
        hidden(kTokens),
        kSeconds,
        hidden(kSum),
        {{"EP exposed", "", kPercent},
         [](const TrainingStep& step) { return step.parts.ep / step.seconds; }},
        {{"vs " + first.layout.system, "", kTimes},
         [&first](const TrainingStep& step) { return first.seconds / step.seconds; }}};
    Table table = steps_table("systems", std::move(columns), steps);
    BarChart chart = time_chart(table, "A step under each system, with its best parallel layout",
                                "layout.system");
    return {"Systems",
            {},
            {{std::move(table), steps.size() > 1 ? Reader::all : Reader::program},
             {std::move(chart), Reader::page}}};
}

Section front_section(const Steps& front) {
    Table table = steps_table(
        "front",
        {kSum, kMfu, kSeconds, hidden(kTokens), layout_column("less memory, at what speed")},
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

Section count_section(const Plan& plan) {
    const auto count = [](std::size_t number) {
        return grouped(static_cast<std::int64_t>(number));
    };
    const TrainingStep& best = plan.best.front();
    Section section;
    section.notes.emplace_back(fmt::format(
        "{} parallel layouts looked at: {} do not fit in {} GB, {} were timed", count(plan.layouts),
        count(plan.too_large), significant(best.capacity / 1e9), count(plan.timed)));
    if (plan.refused > 0)
        section.notes.emplace_back(
            fmt::format("{} left out: {}", count(plan.refused), plan.refusal));
    section.notes.emplace_back(
        fmt::format("The first in full: --explain {}", to_text(best.layout)));
    return section;
}

// One layout in full

std::string fit_words(const TrainingStep& step) {
    const double sum = step.memory.sum();
    if (step.fits)
        return fmt::format("It fits: {} of {} a GPU.", byte_size(sum), byte_size(step.capacity));
    if (sum <= step.capacity)
        return fmt::format("It does not fit: {} a GPU of the host's memory, which has {}.",
                           byte_size(step.memory.host), byte_size(step.host_capacity));
    return fmt::format("It does not fit: {} a GPU, {} more than its {}.", byte_size(sum),
                       byte_size(sum - step.capacity), byte_size(step.capacity));
}

/// What is left for data parallelism, and who moves rows.
std::string ranks_words(const TrainingRun& run, const ParallelLayout& l) {
    const std::int64_t dense = std::int64_t{l.tp} * l.cp * l.pp;
    if (run.model.experts == 0) return fmt::format("data parallel {}", run.gpus() / dense);
    const std::int64_t sparse = std::int64_t{l.etp} * l.ep * l.pp;
    return fmt::format("data parallel {}, experts {}{}", run.gpus() / dense, run.gpus() / sparse,
                       l.ep * l.etp > 1 ? "; rows by " + exchange_of(run, l) : "");
}

std::string summary(const TrainingRun& run, const TrainingStep& step) {
    return fmt::format(
        "{}\n{} a step, {} tokens/s a GPU, {} TFLOP/s a GPU, MFU {}\nlimited by {}; "
        "{} micro-batch{} of {} sequence{}\n{}\n{}\n",
        to_text(step.layout), duration(step.seconds), tenths(step.tokens_per_second),
        tenths(step.tflops()), percent(step.mfu), step.limit, grouped(step.micro_batches),
        step.micro_batches > 1 ? "es" : "", step.layout.micro_batch,
        step.layout.micro_batch > 1 ? "s" : "", ranks_words(run, step.layout), fit_words(step));
}

/// A micro-batch in each stage, all its pieces together.
std::vector<StageTime> stages_of(const TrainingStep& step) {
    std::vector<StageTime> stages(static_cast<std::size_t>(step.layout.pp));
    for (const StageTime& one : step.stages) {
        StageTime& stage = stages[static_cast<std::size_t>(one.stage)];
        stage.stage = one.stage;
        stage.forward += one.forward;
        stage.backward += one.backward;
    }
    return stages;
}

Table stages_table(const std::vector<StageTime>& stages) {
    constexpr std::size_t kMostRows = 24;
    double longest = 0;
    for (const StageTime& one : stages) longest = std::max(longest, one.forward + one.backward);
    Table table = table_of<StageTime>(
        "", "",
        {{{"stage", "", kWhole}, [](const StageTime& one) { return one.stage; }},
         {{"forward ms", "", scaled(fixed(2), 1e3)},
          [](const StageTime& one) { return one.forward; }},
         {{"backward ms", "", scaled(fixed(2), 1e3)},
          [](const StageTime& one) { return one.backward; }},
         {{"", "", bar_of(32)},
          [&](const StageTime& one) { return (one.forward + one.backward) / longest; }}},
        stages);
    if (stages.size() <= kMostRows) return table;
    const auto middle = table.rows.begin() + kMostRows / 2;  // what lies between is alike
    *middle = {"…", "…", "…", nullptr};
    table.rows.erase(middle + 1, table.rows.end() - kMostRows / 2);
    return table;
}

BarChart stages_chart(const std::vector<StageTime>& stages) {
    BarChart chart{
        "One micro-batch in each stage", "ms", {}, {{"forward", {}}, {"backward", {}}}, true};
    for (const StageTime& stage : stages) {
        chart.categories.push_back(fmt::format("stage {}", stage.stage));
        chart.series[0].values.emplace_back(1e3 * stage.forward);
        chart.series[1].values.emplace_back(1e3 * stage.backward);
    }
    return chart;
}

Section pipeline_section(const TrainingStep& step, std::shared_ptr<TrainingClock> clock) {
    const std::vector<StageTime> stages = stages_of(step);
    Lines picture;
    picture.drawn = [clock = std::move(clock), layout = step.layout](int width) {
        return width < kLeastPicture
                   ? fmt::format("The pipeline is drawn in {} columns or more.\n", kLeastPicture)
                   : clock->picture(layout, std::min(width, kPicture));
    };
    picture.text = picture.drawn(kPicture);
    return {"The pipeline",
            {},
            {{stages_table(stages), Reader::terminal},
             {stages_chart(stages), Reader::page},
             std::move(picture)}};
}

std::string run_words(const PlanCase& what) {
    const TrainingRun& run = what.run;
    const int nodes = run.machine.nodes;
    return fmt::format("{} on {}: {} GPU{}{}, {}, by {}", what.model_name, what.machine_name,
                       grouped(run.gpus()), run.gpus() > 1 ? "s" : "",
                       nodes > 1 ? fmt::format(" in {} nodes", grouped(nodes)) : "",
                       name_of(run.precision), what.trainer_name);
}

std::string step_words(const TrainingRun& run) {
    return fmt::format("a step: {} sequence{} of {} tokens, {} tokens{}", grouped(run.global_batch),
                       run.global_batch > 1 ? "s" : "", grouped(run.sequence),
                       grouped(run.global_batch * run.sequence),
                       run.model.experts > 0 ? fmt::format("; {} routing", run.routing) : "");
}

std::string flops_words(const TrainingRun& run, const TrainingStep& any) {
    return fmt::format("a token: {} GFLOP forward and backward, {} of attention's pairs counted{}",
                       significant(any.flops_per_token / 1e9),
                       run.trainer.causal_flops ? "half" : "all",
                       run.model.mtp_layers == 0 ? ""
                       : run.mtp                 ? ", with multi-token prediction"
                                                 : ", without multi-token prediction");
}

/// What both ways of asking for layouts begin with.
Answer layouts_answer(const PlanCase& what, const TrainingStep& any) {
    const TrainingRun& run = what.run;
    Answer answer = what.answer();
    answer.lead = {run_words(what), step_words(run), flops_words(run, any)};
    const std::string fixed = to_text(what.fixed);
    if (!fixed.empty()) answer.lead.push_back("fixed: " + fixed);
    if (!what.settings.empty())
        answer.lead.push_back(fmt::format("with {}", fmt::join(what.settings, ", ")));
    answer.facts["flops_per_token"] = any.flops_per_token;
    answer.facts["causal_flops"] = run.trainer.causal_flops;
    answer.facts["capacity_bytes"] = any.capacity;
    return answer;
}

}  // namespace

Answer PlanCase::answer() const {
    Answer answer{.title = fmt::format("Training {} on {} GPUs of {}", model_name,
                                       grouped(run.gpus()), machine_name)};
    answer.facts = {{"model", model_name},
                    {"machine", machine_name},
                    {"trainer", trainer_name},
                    {"set", settings},
                    {"fixed", to_text(fixed)},
                    {"gpus", run.gpus()},
                    {"nodes", run.machine.nodes},
                    {"sequence", run.sequence},
                    {"global_batch", run.global_batch},
                    {"tokens", run.sequence * run.global_batch},
                    {"precision", name_of(run.precision)},
                    {"routing", run.routing},
                    {"mtp", run.mtp && run.model.mtp_layers > 0}};
    add_configuration(answer.configuration, "Machine", run.machine);
    add_configuration(answer.configuration, "Model", run.model);
    add_configuration(answer.configuration, "Trainer", run.trainer);
    return answer;
}

Answer searched_answer(const PlanCase& what, const Plan& plan) {
    const TrainingStep& best = plan.best.front();
    Answer answer = layouts_answer(what, best);
    answer.main = "best";
    answer.facts["layouts"] = plan.layouts;
    answer.facts["timed"] = plan.timed;
    answer.facts["too_large"] = plan.too_large;
    answer.facts["refused"] = plan.refused;
    answer.facts["refusal"] = plan.refusal.empty() ? Json(nullptr) : Json(plan.refusal);
    if (plan.systems.empty())
        answer.facts["systems"] = Json::array();
    else
        answer.sections.push_back(systems_section(plan.systems));
    const Steps first(plan.best.begin(), plan.best.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                 plan.best.size(), kBreakdowns)));
    Table best_table = layouts_table("best", plan.best);
    Section memory = memory_section(best, best_table, "rank", Reader::terminal);
    BarChart times = time_chart(best_table, "Where a step's time goes", "rank");
    answer.sections.push_back({"The fastest parallel layouts",
                               {},
                               {std::move(best_table),
                                {breakdown_table(first), Reader::terminal},
                                {kinds_chart(first), Reader::terminal},
                                {std::move(times), Reader::page}},
                               {"Shares are of the stage that is busy longest."}});
    answer.sections.push_back(std::move(memory));
    answer.sections.push_back(front_section(plan.front));
    answer.sections.push_back(count_section(plan));
    return answer;
}

Answer explained_answer(const PlanCase& what, std::shared_ptr<TrainingClock> clock,
                        const ParallelLayout& layout) {
    const TrainingStep step = clock->exact(layout);
    Table table = layouts_table("step", {step});
    Section memory = memory_section(step, table, "layout.text", Reader::all);
    BarChart times = time_chart(table, "Where the step's time goes", "layout.text");
    Answer answer = layouts_answer(what, step);
    answer.sections = {{"One parallel layout",
                        {},
                        {Lines{summary(what.run, step)},
                         {std::move(table), Reader::program},
                         seconds_table(step),
                         {std::move(times), Reader::page}}},
                       std::move(memory)};
    if (step.stages.size() > 1) answer.sections.push_back(pipeline_section(step, std::move(clock)));
    return answer;
}

}  // namespace moehub
