#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/place_arguments.hpp"
#include "cli/place_choice.hpp"
#include "report/document.hpp"
#include "report/placement_report.hpp"
#include "report/progress.hpp"

#include <moehub/error.hpp>

#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Placed {
    PlaceResult result;
    std::vector<ParetoPoint> points;  ///< with --pareto the one asked for, then the others
    bool interrupted = false;         ///< before the one asked for was done
    std::optional<PlacementEffect> effect;
    std::string taken;  ///< the layout's name in the effect
};

/// With --pareto what was asked for has half of the time, the others share the rest.
Placed search(const Interrupt& interrupt, PlaceTask& task, bool pareto) {
    Progress progress("placing");
    PlaceOptions& options = task.options;
    options.stop = interrupt.token();
    const double parts = pareto ? 2 : 1;
    options.time_limit /= parts;
    options.progress = [&](double share, double) { progress.update_share(share / parts); };
    if (pareto) pareto_tries(task.input, options);  // refuses what cannot be, before long work
    Placed placed;
    placed.result = place(task.input, options);
    placed.interrupted = interrupt.happened();
    if (pareto) {
        options.progress = [&](double share, double) { progress.update_share((1 + share) / 2); };
        placed.points = place_pareto(task.input, options, task.held_out);
        if (interrupt.happened())
            placed.result.notes.emplace_back(
                "interrupted: other objectives and caps were not all tried");
    }
    options.progress = {};
    if (interrupt.happened())
        fmt::print(stderr, "moehub: this is the best found until the interruption\n");
    return placed;
}

std::vector<ParetoPoint> front_of(const PlaceTask& task, const Placed& placed,
                                  const PlacementReport& report) {
    std::vector<ParetoPoint> points{{task.options.method, placed.result.objective,
                                     task.options.load_cap, task.options.time_limit,
                                     mean_table(report.judged()).found()}};
    points.insert(points.end(), placed.points.begin(), placed.points.end());
    return pareto_front(points);
}

PlacementReport report_of(const PlaceArguments& arguments, const PlaceTask& task,
                          const Placed& placed) {
    PlacementReport report =
        placement_report({task.input, task.options, placed.result, task.held_out});
    report.machine = arguments.machine;
    report.model = arguments.profiles.model;
    report.interrupted = placed.interrupted;
    report.file = {arguments.output, task.format};
    if (arguments.json)
        report.pairs = pair_traffic(task.held_out.empty() ? task.input.profiles : task.held_out,
                                    placed.result.layout);
    if (arguments.pareto) report.pareto = front_of(task, placed, report);
    report.effect = placed.effect;
    report.taken = placed.taken;
    return report;
}

void write(const PlaceArguments& arguments, const PlaceTask& task, const Placed& placed) {
    if (arguments.output.empty()) return;
    put(layout_text(placed.result.layout, task.format), arguments.output);
}

/// Where systems are named, the fastest layout under the first takes the place of the one found.
void simulate(const PlaceArguments& arguments, PlaceTask& task, Placed& placed) {
    LayoutChoice choice = choose_layout(task, placed.result);
    placed.effect = std::move(choice.effect);
    auto notes = std::move(choice.notes);
    placed.taken = choice.taken.name;
    const bool another = placed.taken != task.options.method;
    task.options = std::move(choice.taken.options);
    placed.result = std::move(choice.taken.result);
    placed.result.notes.insert(placed.result.notes.begin(), notes.begin(), notes.end());
    if (another) write(arguments, task, placed);
}

/// Layers of the model that the profile lacks stand in the files of some servers all the same.
void note_layers_in_order(const PlaceTask& task, Placed& placed) {
    const int placed_layers = placed.result.layout.layers();
    if (!task.model || placed_layers >= task.model->moe_layers()) return;
    placed.result.notes.push_back(fmt::format(
        "The profile has {} of the model's {} MoE layers; in the others experts stay in order.",
        placed_layers, task.model->moe_layers()));
}

void execute(const PlaceArguments& arguments) {
    // From the start: who stops a search that has not begun gets what it begins with.
    const Interrupt interrupt;
    PlaceTask task = load_place(arguments);
    Placed placed = search(interrupt, task, arguments.pareto);
    write(arguments, task, placed);  // before what takes long or can fail
    if (!task.systems.empty()) simulate(arguments, task, placed);
    note_layers_in_order(task, placed);
    const PlacementReport report = report_of(arguments, task, placed);
    const TextStyle style = style_for("");
    put(arguments.json ? document_text("place", placement_json(report))
                       : fitted(placement_text(report, style), style.width),
        "");
    if (interrupt.happened()) throw Interrupted();
}

}  // namespace

Command place_command() {
    const auto arguments = std::make_shared<PlaceArguments>();
    return {
        "place",
        "Place experts on GPUs from recorded routing, in the files servers load",
        place_options(*arguments),
        "Example:\n"
        "  moehub place law.npy:0-0.5 --evaluate law.npy:0.5-1 --gpus 8 --model deepseek-v2-lite "
        "\\\n      --system deepep -o layout.json\n"
        "  moehub place dumps/*.pt --gpus 16 --machine h100-cluster --replicas 16 -o layout.json\n"
        "  moehub place --profile law.npy intent.npy@2 --gpus 16 --replicas 16 --load-blocks 4 \\\n"
        "      --model deepseek-v2-lite --machine h100-cluster --format trtllm -o layout.yaml\n"
        "  moehub place --profile new.npy --current layout.json --max-moves 40 -o next.json\n"
        "  moehub place --profile law.npy --objective gpus+4*transitions --pareto --time-limit 20",
        [arguments] { execute(*arguments); },
    };
}

}  // namespace moehub
