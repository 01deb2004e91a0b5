#include "cli/commands.hpp"
#include "cli/html_output.hpp"
#include "cli/output.hpp"
#include "cli/plan_rank.hpp"
#include "report/document.hpp"
#include "report/plan_page.hpp"
#include "report/progress.hpp"
#include "report/shape_report.hpp"
#include "report/table.hpp"
#include "request/plan_answer.hpp"
#include "request/plan_arguments.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>

#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kPictureWidth = 100;
constexpr int kLeastPicture = 72;

Plan search(const PlanCase& what, PlanOptions options) {
    Progress progress("planning");
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    return plan_training(what.run, options);
}

void explain(const PlanArguments& arguments, const PlanCase& what) {
    const ParallelLayout layout = explained_layout(*arguments.explain);
    TrainingClock clock(what.run);
    const TrainingStep step = clock.exact(layout);
    const auto document = [&] { return document_text("plan", plan_json(what, step)); };
    if (arguments.html.asked())
        put_page(arguments.html, plan_page(what, step, clock.picture(layout, kPictureWidth)),
                 document());
    if (arguments.json) return put(document(), arguments.output);
    const TextStyle style = style_for(arguments.output);
    const int width = style.bar_width(kPictureWidth, 0);
    const std::string picture =
        width < kLeastPicture
            ? fmt::format("The pipeline is drawn in {} columns or more.\n", kLeastPicture)
            : clock.picture(layout, width);
    put(fitted(explained_text(what, step, picture, style), style.width), arguments.output);
}

void shapes(const PlanArguments& arguments, const ShapeRequest& request) {
    const auto [found, options] = search_shapes(arguments.shapes, request);
    const std::string document = document_text("plan", shape_json(found, options, request.run));
    if (arguments.html.asked()) put_page(arguments.html, shape_page(found, request.run), document);
    const TextStyle style = style_for(arguments.output);
    put(arguments.json ? document
                       : fitted(shape_text(found, options, request.run, style), style.width),
        arguments.output);
}

void execute(const PlanArguments& arguments) {
    require_search(arguments.shapes);
    if (arguments.rank) {
        require_rank_alone(arguments);
        return rank_runs_command(
            {*arguments.rank, arguments.json, arguments.output, arguments.html});
    }
    require_writable({output_file("-o", arguments.output), html_file(arguments.html)});
    const PlanCase what = load_plan(arguments);
    if (arguments.explain) return explain(arguments, what);
    const PlanOptions options = search_options(arguments, what);
    const TextStyle style = style_for(arguments.output);
    if (arguments.shapes.search_model)
        return shapes(arguments,
                      {what.run, what.fixed, what.systems, options.top, options.threads});
    const Plan plan = search(what, options);
    require_fit(what, options, plan);
    const auto document = [&] { return document_text("plan", plan_json(what, plan)); };
    if (arguments.html.asked()) put_page(arguments.html, plan_page(what, plan), document());
    put(arguments.json ? document() : fitted(plan_text(what, plan, style), style.width),
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
