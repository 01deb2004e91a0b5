#include "report/plan_page.hpp"

#include "report/shape_report.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

using Align = Table::Align;

constexpr double kGiga = 1e9;

/// Parts of several steps, stacked; those that are 0 in all are left out.
BarChart parts_chart(std::string title, const std::vector<TrainingStep>& steps,
                     const std::vector<std::string>& names) {
    BarChart chart{std::move(title), "s", names, {}, true};
    const std::size_t count = parts_of(steps.front().parts).size();
    for (std::size_t part = 0; part < count; ++part) {
        ChartSeries series{std::string(parts_of(steps.front().parts)[part].name), {}};
        double most = 0;
        for (const TrainingStep& step : steps) {
            series.values.emplace_back(parts_of(step.parts)[part].value);
            most = std::max(most, *series.values.back());
        }
        if (most > 0) chart.series.push_back(std::move(series));
    }
    return chart;
}

BarChart memory_chart(const std::vector<TrainingStep>& steps,
                      const std::vector<std::string>& names) {
    BarChart chart{
        fmt::format("Memory of the fullest GPU, which has {}", byte_size(steps.front().capacity)),
        "GB",
        names,
        {},
        true};
    const std::size_t count = parts_of(steps.front().memory).size();
    for (std::size_t part = 0; part < count; ++part) {
        ChartSeries series{std::string(parts_of(steps.front().memory)[part].name), {}};
        double most = 0;
        for (const TrainingStep& step : steps) {
            series.values.emplace_back(parts_of(step.memory)[part].value / kGiga);
            most = std::max(most, *series.values.back());
        }
        if (most > 0) chart.series.push_back(std::move(series));
    }
    return chart;
}

PageTable steps_table(std::string caption, const std::vector<TrainingStep>& steps) {
    PageTable table{std::move(caption),
                    {{""},
                     {"parallel layout", Align::left},
                     {"MFU"},
                     {"tokens/s a GPU"},
                     {"step s"},
                     {"GB"},
                     {"limited by", Align::left}},
                    {}};
    for (const TrainingStep& step : steps)
        table.rows.push_back({fmt::format("{}", table.rows.size() + 1), to_text(step.layout),
                              percent(step.mfu), grouped(std::llround(step.tokens_per_second)),
                              significant(step.seconds),
                              fmt::format("{:.1f}", step.memory.sum() / kGiga), step.limit});
    return table;
}

/// The table has the layouts themselves, which are too long for bars.
std::vector<std::string> ranks_of(const std::vector<TrainingStep>& steps) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < steps.size(); ++i) names.push_back(fmt::format("{}", i + 1));
    return names;
}

std::vector<std::string> systems_of(const std::vector<TrainingStep>& steps) {
    std::vector<std::string> names;
    for (const TrainingStep& step : steps)
        names.push_back(step.layout.system.empty() ? "the trainer's" : step.layout.system);
    return names;
}

PageSection front_section(const Plan& plan) {
    LineChart chart{"Speed and memory: no other layout is faster with as little",
                    {"GB of a GPU", false, false},
                    {"MFU, %", false, false},
                    {{"front", {}}}};
    for (const TrainingStep& step : plan.front)
        chart.series.front().points.push_back(
            {step.memory.sum() / kGiga, 100 * step.mfu, to_text(step.layout)});
    return {"Less memory, at what speed",
            {},
            {std::move(chart), steps_table("Layouts of the front", plan.front)},
            {}};
}

std::vector<std::pair<std::string, std::string>> configuration_of(const TrainingRun& run) {
    return {{fmt::format("Machine: {}", run.machine.name), to_toml(run.machine)},
            {fmt::format("Model: {}", run.model.name), to_toml(run.model)},
            {fmt::format("Trainer: {}", run.trainer.name), to_toml(run.trainer)}};
}

/// Time of a micro-batch in each stage, all pieces together.
BarChart stages_chart(const TrainingStep& step) {
    BarChart chart{
        "One micro-batch in each stage", "ms", {}, {{"forward", {}}, {"backward", {}}}, true};
    const auto stages = static_cast<std::size_t>(step.layout.pp);
    std::vector<double> forward(stages), backward(stages);
    for (const StageTime& one : step.stages) {
        forward[static_cast<std::size_t>(one.stage)] += 1e3 * one.forward;
        backward[static_cast<std::size_t>(one.stage)] += 1e3 * one.backward;
    }
    for (std::size_t stage = 0; stage < stages; ++stage) {
        chart.categories.push_back(fmt::format("stage {}", stage));
        chart.series[0].values.emplace_back(forward[stage]);
        chart.series[1].values.emplace_back(backward[stage]);
    }
    return chart;
}

std::string title_of(const PlanCase& what) {
    return fmt::format("Training {} on {} GPUs of {}", what.model_name, grouped(what.run.gpus()),
                       what.machine_name);
}

/// The fastest, and the base model where it is not among them.
PageTable shapes_table(const ShapeSearch& found) {
    PageTable table{"Fastest first",
                    {{"rank"},
                     {"shape", Align::left},
                     {"total B"},
                     {"active B"},
                     {"tokens/s a GPU"},
                     {"of best"},
                     {"MFU"},
                     {"parallel layout", Align::left}},
                    {}};
    const double fastest = found.best.front().step.tokens_per_second;
    const auto add = [&](const TimedShape& one, std::size_t rank) {
        table.rows.push_back({fmt::format("{}", rank), to_text_of_shape(one.model),
                              fmt::format("{:.1f}", static_cast<double>(one.total) / kGiga),
                              fmt::format("{:.1f}", static_cast<double>(one.active) / kGiga),
                              tenths(one.step.tokens_per_second),
                              fmt::format("{:.3f}", one.step.tokens_per_second / fastest),
                              percent(one.step.mfu), to_text(one.step.layout)});
    };
    for (std::size_t i = 0; i < found.best.size(); ++i) add(found.best[i], i + 1);
    if (found.base && found.base_rank > found.best.size()) add(*found.base, found.base_rank);
    return table;
}

LineChart axis_chart(const ShapeSearch& found, const AxisBest& axis) {
    LineChart chart{axis.axis, {axis.axis}, {"of the best"}, {{axis.axis, {}}}};
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
        chart.x.labels.push_back(fmt::format("{}", axis.values[i]));
        if (axis.tokens_per_second[i] > 0)
            chart.series.front().points.push_back(
                {static_cast<double>(i),
                 axis.tokens_per_second[i] / found.best.front().step.tokens_per_second});
    }
    return chart;
}

}  // namespace

Page plan_page(const PlanCase& what, const Plan& plan) {
    const TrainingStep& best = plan.best.front();
    Page page{title_of(what), lines_of(head_text(what, best.flops_per_token)), {}};
    if (plan.systems.size() > 1)
        page.sections.push_back(
            {"Systems",
             {},
             {parts_chart("A step under each system, with its best parallel layout", plan.systems,
                          systems_of(plan.systems)),
              steps_table("The best parallel layout of each system", plan.systems)},
             {}});
    const std::vector<std::string> names = ranks_of(plan.best);
    page.sections.push_back(
        {"The fastest parallel layouts",
         {},
         {parts_chart("Where a step's time goes", plan.best, names),
          steps_table("Fastest first", plan.best), memory_chart(plan.best, names)},
         {"Bars have the layouts' numbers in the table. Parts are of the stage that is busy "
          "longest."}});
    if (plan.front.size() > 1) page.sections.push_back(front_section(plan));
    page.sections.back().notes.push_back(
        fmt::format("{} parallel layouts looked at: {} do not fit, {} were timed.",
                    grouped(static_cast<std::int64_t>(plan.layouts)),
                    grouped(static_cast<std::int64_t>(plan.too_large)),
                    grouped(static_cast<std::int64_t>(plan.timed))));
    page.configuration = configuration_of(what.run);
    return page;
}

Page plan_page(const PlanCase& what, const TrainingStep& step, const std::string& picture) {
    const std::vector<std::string> name{to_text(step.layout)};
    Page page{title_of(what), lines_of(head_text(what, step.flops_per_token)), {}};
    PageTable parts{"A step", {{"part", Align::left}, {"s"}, {"share"}}, {}};
    for (const NamedPart& part : parts_of(step.parts))
        if (part.value > 0)
            parts.rows.push_back({std::string(part.name), fmt::format("{:.3f}", part.value),
                                  percent(part.value / step.seconds)});
    PageTable memory{"Memory of the fullest GPU", {{"part", Align::left}, {"GB"}, {"share"}}, {}};
    for (const NamedPart& part : parts_of(step.memory))
        if (part.value > 0)
            memory.rows.push_back({std::string(part.name),
                                   fmt::format("{:.1f}", part.value / kGiga),
                                   percent(part.value / step.capacity)});
    page.sections.push_back(
        {"One parallel layout",
         {fmt::format(
             "{}{}", step.fits ? "It fits: " : "It does not fit: ",
             byte_size(step.memory.sum()) + " of " + byte_size(step.capacity) + " a GPU.")},
         {steps_table("In short", {step}), parts_chart("Where the step's time goes", {step}, name),
          std::move(parts), memory_chart({step}, name), std::move(memory)},
         {}});
    if (step.stages.size() > 1)
        page.sections.push_back({"The pipeline", {}, {stages_chart(step)}, {}});
    if (!picture.empty()) page.sections.back().blocks.push_back(picture);
    page.configuration = configuration_of(what.run);
    return page;
}

Page shape_page(const ShapeSearch& found, const TrainingRun& run) {
    Page page{fmt::format("Shapes of {} on {} GPUs of {}", run.model.name, grouped(run.gpus()),
                          run.machine.name),
              {fmt::format("{} of {} shapes are in the windows of parameters, {} run and fit",
                           grouped(static_cast<std::int64_t>(found.within)),
                           grouped(static_cast<std::int64_t>(found.points)),
                           grouped(static_cast<std::int64_t>(found.timed)))},
              {}};
    page.sections.push_back({"Shapes", {base_sentence(found, run)}, {shapes_table(found)}, {}});
    PageSection axes{"The fastest shape with each value of an axis", {}, {}, {}};
    for (const AxisBest& axis : found.by_axis)
        if (LineChart chart = axis_chart(found, axis); chart.series.front().points.size() > 1)
            axes.blocks.push_back(std::move(chart));
    if (!axes.blocks.empty()) page.sections.push_back(std::move(axes));
    page.configuration = configuration_of(run);
    return page;
}

}  // namespace moehub
