#include "plan/units.hpp"
#include "report/bar.hpp"
#include "report/plan_report.hpp"
#include "report/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kBreakdowns = 3;
constexpr int kShareWidth = 32;
constexpr std::size_t kFrontWidth = 76;
constexpr double kNothing = 1e-6;  ///< a share that rounding leaves

std::vector<TrainingStep> first_of(const std::vector<TrainingStep>& steps, std::size_t most) {
    return {steps.begin(),
            steps.begin() + static_cast<std::ptrdiff_t>(std::min(steps.size(), most))};
}

/// What each system makes of the run with the layout that suits it best.
std::string systems_text(const std::vector<TrainingStep>& steps, const TextStyle& style) {
    Table table({{"system", Table::Align::left},
                 {"its best parallel layout", Table::Align::text},
                 {"MFU"},
                 {"step s"},
                 {"EP exposed"},
                 {fmt::format("vs {}", steps.front().layout.system)}});
    for (const TrainingStep& step : steps) {
        ParallelLayout shown = step.layout;
        shown.system.clear();
        table.add({step.layout.system, to_text(shown), percent(step.mfu), significant(step.seconds),
                   percent(step.parts.ep / step.seconds),
                   fmt::format("{:.2f}×", steps.front().seconds / step.seconds)});
    }
    return table.text(style);
}

std::string front_text(const std::vector<TrainingStep>& steps, const TextStyle& style) {
    Table table({{"GB"}, {"MFU"}, {"step s"}, {"less memory, at what speed", Table::Align::text}});
    for (const TrainingStep& step : steps) {
        const std::vector<std::string> lines = layout_lines(step.layout, kFrontWidth);
        table.add({fmt::format("{:.1f}", step.memory.sum() / 1e9), percent(step.mfu),
                   significant(step.seconds), lines.front()});
        for (std::size_t line = 1; line < lines.size(); ++line)
            table.add({"", "", "", lines[line]});
    }
    return table.text(style);
}

std::string count_text(const Plan& plan, const TrainingStep& best) {
    const auto count = [](std::size_t number) {
        return grouped(static_cast<std::int64_t>(number));
    };
    std::string text =
        fmt::format("{} parallel layouts looked at: {} do not fit in {} GB, {} were timed\n",
                    count(plan.layouts), count(plan.too_large), significant(best.capacity / 1e9),
                    count(plan.timed));
    if (plan.refused > 0)
        text += fmt::format("{} left out: {}\n", count(plan.refused), plan.refusal);
    return text;
}

std::string fit_text(const TrainingStep& step) {
    const double sum = step.memory.sum();
    if (sum <= step.capacity && !step.fits)
        return fmt::format("It does not fit: {} a GPU of the host's memory, which has {}.\n",
                           byte_size(step.memory.host), byte_size(step.host_capacity));
    if (step.fits)
        return fmt::format("It fits: {} of {} a GPU.\n", byte_size(sum), byte_size(step.capacity));
    return fmt::format("It does not fit: {} a GPU, {} more than its {}.\n", byte_size(sum),
                       byte_size(sum - step.capacity), byte_size(step.capacity));
}

/// What is left for data parallelism, and who moves rows.
std::string ranks_text(const TrainingRun& run, const ParallelLayout& l) {
    const std::int64_t dense = std::int64_t{l.tp} * l.cp * l.pp;
    if (run.model.experts == 0) return fmt::format("data parallel {}\n", run.gpus() / dense);
    const std::int64_t sparse = std::int64_t{l.etp} * l.ep * l.pp;
    return fmt::format("data parallel {}, experts {}{}\n", run.gpus() / dense, run.gpus() / sparse,
                       l.ep * l.etp > 1 ? "; rows by " + exchange_of(run, l) : "");
}

std::string seconds_text(const TrainingStep& step, const TextStyle& style) {
    Table table({{"a step", Table::Align::left}, {"s"}, {"share"}, {"", Table::Align::bar}});
    for (const NamedPart& part : parts_of(step.parts)) {
        if (part.value < kNothing * step.seconds) continue;
        const BarPart whole{part.value, part.mark};
        table.add({std::string(part.name), fmt::format("{:.3f}", part.value),
                   percent(part.value / step.seconds),
                   stacked_bar({&whole, 1}, step.seconds, kShareWidth)});
    }
    table.add({"in all", fmt::format("{:.3f}", step.seconds), percent(1)});
    return table.text(style);
}

}  // namespace

std::string plan_text(const PlanCase& what, const Plan& plan, const TextStyle& style) {
    const TrainingStep& best = plan.best.front();
    std::string out = head_text(what, best.flops_per_token) + "\n";
    if (plan.systems.size() > 1) out += systems_text(plan.systems, style) + "\n";
    out += layouts_table(plan.best, style) + "\n";
    out += breakdown_text(first_of(plan.best, kBreakdowns), style) + "\n";
    out += memory_text(best, style) + "\n";
    if (plan.front.size() > 1) out += front_text(plan.front, style) + "\n";
    return out + count_text(plan, best) +
           fmt::format("The first in full: --explain {}\n", to_text(best.layout));
}

std::string explained_text(const PlanCase& what, const TrainingStep& step,
                           const std::string& picture, const TextStyle& style) {
    std::string out = head_text(what, step.flops_per_token) + "\n";
    out += fmt::format(
        "{}\n{} a step, {} tokens/s a GPU, {} TFLOP/s a GPU, MFU {}\nlimited by {}; "
        "{} micro-batch{} of {} sequence{}\n",
        to_text(step.layout), duration(step.seconds), tenths(step.tokens_per_second),
        tenths(step.tflops()), percent(step.mfu), step.limit, grouped(step.micro_batches),
        step.micro_batches > 1 ? "es" : "", step.layout.micro_batch,
        step.layout.micro_batch > 1 ? "s" : "");
    out += ranks_text(what.run, step.layout) + fit_text(step) + "\n" + seconds_text(step, style) +
           "\n" + memory_text(step, style);
    if (step.stages.size() > 1) out += "\n" + stages_text(step, style);
    if (!picture.empty()) out += "\n" + picture;
    return out;
}

}  // namespace moehub
