// Shapes of a model by how fast they train.
#include "answers/plan_answers.hpp"
#include "report/number.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// A shape and its place among all, from 1; 0: not among them.
struct RankedShape {
    TimedShape shape;
    std::size_t rank;
};
using ShapeColumn = ColumnOf<RankedShape>;

std::vector<ShapeColumn> columns_of(double fastest) {
    const auto of_model = [](auto Model::*member) {
        return [member](const RankedShape& one) { return one.shape.model.*member; };
    };
    const auto of_step = [](auto TrainingStep::*member) {
        return [member](const RankedShape& one) { return one.shape.step.*member; };
    };
    constexpr Show kBillions = kGigabytes;
    return {
        {{"rank", "", kWhole}, &RankedShape::rank},
        {{"layers", "layers", kWhole}, of_model(&Model::layers)},
        {{"dense", "dense_layers", kWhole, 2}, of_model(&Model::dense_layers)},
        {{"hidden", "hidden", kWhole}, of_model(&Model::hidden)},
        {{"heads", "heads", kWhole, 2},
         [](const RankedShape& one) { return one.shape.model.attention.heads; }},
        {{"experts", "experts", kWhole}, of_model(&Model::experts)},
        {{"top-k", "top_k", kWhole}, of_model(&Model::top_k)},
        {{"FFN", "expert_ffn", kWhole}, of_model(&Model::expert_ffn)},
        {{"shared", "shared_experts", kWhole, 2}, of_model(&Model::shared_experts)},
        {{"total B", "parameters", kBillions},
         [](const RankedShape& one) { return one.shape.total; }},
        {{"active B", "active_parameters", kBillions},
         [](const RankedShape& one) { return one.shape.active; }},
        {{"tokens/s/GPU", "tokens_per_second_per_gpu", kTenths},
         of_step(&TrainingStep::tokens_per_second)},
        {{"of best", "", fixed(3)},
         [fastest](const RankedShape& one) { return one.shape.step.tokens_per_second / fastest; }},
        {{"MFU", "mfu", kPercent}, of_step(&TrainingStep::mfu)},
        {hidden("step_seconds"), of_step(&TrainingStep::seconds)},
        {{"parallel layout", "parallel_layout", kProse, 1},
         [](const RankedShape& one) { return to_text(one.shape.step.layout); }},
    };
}

/// Columns as pages have them: a shape is one column of words, which take less room.
std::vector<ShapeColumn> page_columns(const std::vector<ShapeColumn>& columns) {
    const auto rest = std::find_if(columns.begin(), columns.end(), [](const ShapeColumn& one) {
        return one.column.key == "parameters";
    });
    std::vector<ShapeColumn> shown{columns.front(),
                                   {{"shape", "", kProse}, [](const RankedShape& one) {
                                        return to_text_of_shape(one.shape.model);
                                    }}};
    shown.insert(shown.end(), rest, columns.end());
    return shown;
}

/// Where the base model stands.
std::string base_sentence(const PlanCase& what, const ShapeSearch& found) {
    const std::string& name = what.run.model.name;
    if (!found.base) return fmt::format("{} itself does not run or fit under these layouts.", name);
    const double share =
        found.base->step.tokens_per_second / found.best.front().step.tokens_per_second;
    const std::string shape = to_text_of_shape(what.run.model);
    if (found.base_rank == 0)
        return fmt::format("{} itself, {}, is not among them; it would reach {:.3f} of the best.",
                           name, shape, share);
    return fmt::format("{} itself, {}, is number {} of {}, {:.3f} of the best.", name, shape,
                       found.base_rank, grouped(static_cast<std::int64_t>(found.timed)), share);
}

/// For each value of an axis the fastest shape that has it.
Table axis_table(const AxisBest& axis, double fastest) {
    Table table{"by_axis." + axis.axis,
                "",
                {{axis.axis, "value", kWhole},
                 hidden("tokens_per_second_per_gpu"),
                 {"of best", "", fixed(3)},
                 {"", "", bar_of(24)}},
                {}};
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
        const double speed = axis.tokens_per_second[i];
        const bool none = speed == 0;
        table.rows.push_back({axis.values[i], speed, none ? Json("none") : Json(speed / fastest),
                              none ? Json(nullptr) : Json(speed / fastest)});
    }
    return table;
}

/// Without points where a value has no shape.
LineChart axis_chart(const AxisBest& axis, double fastest) {
    LineChart chart{axis.axis, {axis.axis}, {"of the best"}, {{axis.axis, {}}}};
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
        chart.x.labels.push_back(fmt::format("{}", axis.values[i]));
        if (axis.tokens_per_second[i] > 0)
            chart.series.front().points.push_back(
                {static_cast<double>(i), axis.tokens_per_second[i] / fastest});
    }
    return chart;
}

std::vector<std::string> lead_of(const PlanCase& what, const ShapeSearchOptions& options,
                                 const ShapeSearch& found) {
    const TrainingRun& run = what.run;
    const auto count = [](auto number) { return grouped(static_cast<std::int64_t>(number)); };
    const std::string fixed = to_text(options.fixed);
    return {
        fmt::format("Shapes with {} parameters, {} active (without the input embedding), "
                    "trained on {} GPUs of {}",
                    to_text(options.total), to_text(options.active), run.gpus(), run.machine.name),
        fmt::format("by {}, {}, {} sequences of {} tokens a step{}", run.trainer.name,
                    name_of(run.precision), grouped(run.global_batch), grouped(run.sequence),
                    fixed.empty() ? "" : "; fixed: " + fixed),
        fmt::format("{} of {} shapes of the axes are in the windows; {} of them run and fit "
                    "under {}",
                    count(found.within), count(found.points), count(found.timed),
                    several(std::ssize(found.layouts), "parallel layout"))};
}

Json window_json(const ParameterWindow& window) {
    return {{"centre", window.centre}, {"width", window.width}};
}

Json facts_of(const PlanCase& what, const ShapeSearchOptions& options, const ShapeSearch& found) {
    Json layouts = Json::array();
    for (const ParallelLayout& layout : found.layouts) layouts.push_back(to_text(layout));
    return {{"machine", what.run.machine.name},
            {"gpus", what.run.gpus()},
            {"base_model", what.run.model.name},
            {"parameters", window_json(options.total)},
            {"active_parameters", window_json(options.active)},
            {"points", found.points},
            {"within", found.within},
            {"timed", found.timed},
            {"parallel_layouts", std::move(layouts)},
            {"base", nullptr},
            {"base_rank", found.base_rank},
            {"by_axis", Json::object()}};
}

/// The fastest for programs; for people the base model behind them where it is none of them.
Section shapes_section(const PlanCase& what, const ShapeSearch& found) {
    const std::vector<ShapeColumn> columns = columns_of(found.best.front().step.tokens_per_second);
    std::vector<RankedShape> best;
    for (const TimedShape& one : found.best) best.push_back({one, best.size() + 1});
    Section section{"Shapes", {}, {{table_of("best", "", columns, best), Reader::program}}};
    if (found.base) {
        const RankedShape base{*found.base, found.base_rank};
        Facts facts;
        for (const ShapeColumn& column : columns)
            if (!column.column.key.empty())
                facts.list.push_back({{column.column.words, "base." + column.column.key, kHidden},
                                      column.value(base)});
        section.blocks.push_back(std::move(facts));
        if (base.rank > best.size()) best.push_back(base);
    }
    section.blocks.push_back({table_of("", "", columns, best), Reader::terminal});
    section.blocks.push_back({table_of("", "", page_columns(columns), best), Reader::page});
    section.notes = {base_sentence(what, found)};
    return section;
}

}  // namespace

Answer shapes_answer(const PlanCase& what, const ShapeSearchOptions& options,
                     const ShapeSearch& found) {
    Answer answer = what.answer();
    answer.title = fmt::format("Shapes of {} on {} GPUs of {}", what.run.model.name,
                               grouped(what.run.gpus()), what.run.machine.name);
    answer.lead = lead_of(what, options, found);
    answer.facts = facts_of(what, options, found);
    answer.main = "best";
    answer.sections.push_back(shapes_section(what, found));
    Section axes{"The fastest shape with each value of an axis"};
    const double fastest = found.best.front().step.tokens_per_second;
    for (const AxisBest& axis : found.by_axis) {
        axes.blocks.push_back({axis_table(axis, fastest), Reader::terminal});
        if (LineChart chart = axis_chart(axis, fastest); chart.series.front().points.size() > 1)
            axes.blocks.push_back({std::move(chart), Reader::page});
    }
    if (!axes.blocks.empty())
        axes.blocks.insert(
            axes.blocks.begin(),
            {Lines{"The fastest shape with each value of an axis:\n"}, Reader::terminal});
    answer.sections.push_back(std::move(axes));
    return answer;
}

}  // namespace moehub
