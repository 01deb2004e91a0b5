#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/plan_arguments.hpp"
#include "cli/plan_rank.hpp"
#include "report/plan_page.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>

#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kPictureWidth = 100;

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
    if (arguments.html.asked())
        put_page(arguments.html, plan_page(what, step, clock.picture(layout, kPictureWidth)),
                 to_json(what, step));
    if (arguments.json) return put(to_json(what, step), arguments.output);
    const bool colour = arguments.output.empty() && wants_colour(stdout);
    put(explained_text(what, step, clock.picture(layout, kPictureWidth), colour), arguments.output);
}

void execute(const PlanArguments& arguments) {
    require_search(arguments.shapes);
    if (arguments.rank) {
        require_rank_alone(arguments);
        return rank_runs_command(
            {*arguments.rank, arguments.json, arguments.output, arguments.html});
    }
    require_writable(arguments.output);
    require_writable(arguments.html, arguments.output);
    const PlanCase what = load_plan(arguments);
    if (arguments.explain) return explain(arguments, what);
    const PlanOptions options = search_options(arguments, what);
    const bool colour = arguments.output.empty() && wants_colour(stdout);
    if (arguments.shapes.search_model)
        return put(search_shapes_text(arguments.shapes,
                                      {what.run, what.fixed, what.systems, options.top,
                                       options.threads, arguments.json, colour, arguments.html}),
                   arguments.output);
    const Plan plan = search(what, options);
    if (plan.best.empty()) throw InputError(nothing_fits(what, options, plan));
    if (arguments.html.asked())
        put_page(arguments.html, plan_page(what, plan), to_json(what, plan));
    put(arguments.json ? to_json(what, plan) : plan_text(what, plan, colour), arguments.output);
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
