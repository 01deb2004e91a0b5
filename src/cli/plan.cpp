#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/plan_rank.hpp"
#include "report/document.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"
#include "request/plan_arguments.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>

#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kPictureWidth = 100;  ///< where there is room

Plan search(const PlanCase& what, PlanOptions options) {
    Progress progress("planning");
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    return plan_training(what.run, options);
}

/// One line: by how much the smallest misses, and what would do.
std::string nothing_fits(const PlanCase& what, const PlanOptions& options, const Plan& plan) {
    const TrainingStep& least = plan.nearest.front();
    const bool here = least.memory.sum() > least.capacity;
    const double memory = here ? least.memory.sum() : least.memory.host;
    return fmt::format(
        "nothing fits: of {} parallel layouts the smallest, {}, takes {} {}, {} more than it has; "
        "{}",
        grouped(static_cast<std::int64_t>(plan.layouts)), to_text(least.layout), byte_size(memory),
        here ? "a GPU" : "of the host's memory for each GPU",
        byte_size(memory - (here ? least.capacity : least.host_capacity)),
        what_would_fit(what.run, options, what.whole));
}

void explain(const PlanArguments& arguments, const PlanCase& what) {
    ParallelLayout layout;
    try {
        if (arguments.explain->empty())
            throw InputError("found nothing, allowed: KEY=VALUE, as in tp=2,pp=8,ep=8");
        layout = parse_parallel_layout(*arguments.explain);
        if (!layout.system.empty()) check_systems({layout.system});
    } catch (const InputError& error) {
        throw InputError(fmt::format("--explain: {}", error.what()));
    }
    TrainingClock clock(what.run);
    const TrainingStep step = clock.exact(layout);
    if (arguments.json) return put(document_text("plan", plan_json(what, step)), arguments.output);
    const TextStyle style = style_for(arguments.output);
    const std::string picture = clock.picture(layout, style.bar_width(kPictureWidth, 0));
    put(fitted(explained_text(what, step, picture, style), style.width), arguments.output);
}

void execute(const PlanArguments& arguments) {
    require_search(arguments.shapes);
    if (arguments.rank) {
        require_rank_alone(arguments);
        return rank_runs_command({*arguments.rank, arguments.json, arguments.output});
    }
    require_writable(arguments.output);
    const PlanCase what = load_plan(arguments);
    if (arguments.explain) return explain(arguments, what);
    const PlanOptions options = search_options(arguments, what);
    const TextStyle style = style_for(arguments.output);
    if (arguments.shapes.search_model)
        return put(
            search_shapes_text(arguments.shapes, {what.run, what.fixed, what.systems, options.top,
                                                  options.threads, arguments.json, style}),
            arguments.output);
    const Plan plan = search(what, options);
    if (plan.best.empty()) throw InputError(nothing_fits(what, options, plan));
    put(arguments.json ? document_text("plan", plan_json(what, plan))
                       : fitted(plan_text(what, plan, style), style.width),
        arguments.output);
}

}  // namespace

Command plan_command() {
    const auto arguments = std::make_shared<PlanArguments>();
    return {
        "plan",
        "Plan a training run: the fastest parallel layouts of a model on a cluster, and why",
        plan_options(*arguments),
        "Example:\n"
        "  moehub plan --model qwen3-235b-a22b --machine h100-cluster --gpus 256 "
        "\\\n      --global-batch 2048\n"
        "  moehub plan --fix tp=2,pp=8 --precision fp8\n"
        "  moehub plan --system deepep,moe-hub,dysharp\n"
        "  moehub plan --explain tp=2,pp=8,ep=8\n"
        "  moehub plan --rank validation/published_training.csv\n"
        "  moehub plan --search-model --params 718e9±5% --active 39e9±5%",
        [arguments] { execute(*arguments); },
    };
}

}  // namespace moehub
