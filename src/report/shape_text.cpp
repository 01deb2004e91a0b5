#include "report/shape_report.hpp"
#include "report/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

std::string billions(std::int64_t count) {
    return fmt::format("{:.1f}", static_cast<double>(count) * 1e-9);
}

std::vector<std::string> row_of(const TimedShape& one, std::string rank, double fastest) {
    const Model& m = one.model;
    return {std::move(rank),
            fmt::format("{}", m.layers),
            fmt::format("{}", m.dense_layers),
            fmt::format("{}", m.hidden),
            fmt::format("{}", m.attention.heads),
            fmt::format("{}", m.experts),
            fmt::format("{}", m.top_k),
            fmt::format("{}", m.expert_ffn),
            fmt::format("{}", m.shared_experts),
            billions(one.total),
            billions(one.active),
            tenths(one.step.tokens_per_second),
            fmt::format("{:.3f}", one.step.tokens_per_second / fastest),
            percent(one.step.mfu),
            to_text(one.step.layout)};
}

Table table_of(const ShapeSearch& found, double fastest) {
    Table table({{"rank"},
                 {"layers"},
                 {"dense", Table::Align::right, 2},
                 {"hidden"},
                 {"heads", Table::Align::right, 2},
                 {"experts"},
                 {"top-k"},
                 {"FFN"},
                 {"shared", Table::Align::right, 2},
                 {"total B"},
                 {"active B"},
                 {"tokens/s/GPU"},
                 {"of best"},
                 {"MFU"},
                 {"parallel layout", Table::Align::text, 1}});
    for (std::size_t i = 0; i < found.best.size(); ++i)
        table.add(row_of(found.best[i], fmt::format("{}", i + 1), fastest));
    if (found.base && found.base_rank > found.best.size())
        table.add(row_of(*found.base, fmt::format("{}", found.base_rank), fastest));
    return table;
}

std::string axis_lines(const AxisBest& axis, double fastest) {
    constexpr int kWidth = 24;
    Table table({{axis.axis}, {"of best"}, {"", Table::Align::bar}});
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
        const double share = axis.tokens_per_second[i] / fastest;
        const bool none = axis.tokens_per_second[i] == 0;
        table.add({fmt::format("{}", axis.values[i]), none ? "none" : fmt::format("{:.3f}", share),
                   none ? "" : bar(share, kWidth)});
    }
    return "\n" + table.text();
}

}  // namespace

std::string base_sentence(const ShapeSearch& found, const TrainingRun& run) {
    if (!found.base)
        return fmt::format("{} itself does not run or fit under these layouts.", run.model.name);
    const double share =
        found.base->step.tokens_per_second / found.best.front().step.tokens_per_second;
    if (found.base_rank == 0)
        return fmt::format("{} itself, {}, is not among them; it would reach {:.3f} of the best.",
                           run.model.name, to_text_of_shape(run.model), share);
    return fmt::format("{} itself, {}, is number {} of {}, {:.3f} of the best.", run.model.name,
                       to_text_of_shape(run.model), found.base_rank,
                       grouped(static_cast<std::int64_t>(found.timed)), share);
}

std::string shape_text(const ShapeSearch& found, const ShapeSearchOptions& options,
                       const TrainingRun& run, const TextStyle& style) {
    const double fastest = found.best.front().step.tokens_per_second;
    std::string text = fmt::format(
        "Shapes with {} parameters, {} active (without the input embedding), trained on {} GPUs of "
        "{}\nby {}, {}, {} sequences of {} tokens a step{}\n{} of {} shapes of the axes are in the "
        "windows; {} of them run and fit under {} "
        "parallel layout{}\n\n",
        to_text(options.total), to_text(options.active), run.gpus(), run.machine.name,
        run.trainer.name, name_of(run.precision), grouped(run.global_batch),
        grouped(run.sequence > 0 ? run.sequence : run.model.sequence),
        options.fixed.empty() ? "" : "; fixed: " + options.fixed,
        grouped(static_cast<std::int64_t>(found.within)),
        grouped(static_cast<std::int64_t>(found.points)),
        grouped(static_cast<std::int64_t>(found.timed)), found.layouts.size(),
        found.layouts.size() == 1 ? "" : "s");
    text += table_of(found, fastest).text(style);
    text += "\n" + base_sentence(found, run) + "\n";
    text += "\nThe fastest shape with each value of an axis:\n";
    for (const AxisBest& axis : found.by_axis) text += axis_lines(axis, fastest);
    return text;
}

}  // namespace moehub
