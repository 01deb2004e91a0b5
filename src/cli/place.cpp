#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/place_arguments.hpp"
#include "cli/place_interrupt.hpp"
#include "report/placement_report.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

#include <moehub/error.hpp>

#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Placed {
    PlaceResult result;
    std::vector<ParetoPoint> points;  ///< with --pareto the one asked for, then the others
    bool interrupted = false;         ///< before the one asked for was done
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
        fmt::print(stderr, "moehub: interrupted; this is the best found so far\n");
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

/// Contiguous, the current layout where there is one, and the one found; on held-out tokens where
/// there are some.
PlacementEffect simulated(const PlaceTask& task, const PlaceResult& result) {
    Progress progress("simulating");
    std::vector<NamedLayout> layouts{
        {"contiguous", contiguous_layout(shape_of(result.layout), task.input.gpus)}};
    if (task.options.current) layouts.push_back({"current", *task.options.current});
    layouts.push_back({task.options.method, result.layout});
    const Profile& profile =
        task.held_out.empty() ? task.input.profiles.front() : task.held_out.front();
    EffectOptions options;
    options.threads = task.options.threads;
    options.progress = [&](std::size_t done, std::size_t all) { progress.update(done, all); };
    return placement_effect({task.machine, *task.model, profile, layouts, task.systems}, options);
}

/// What cannot be simulated is a note: the layout is there and good.
void add_simulated(const PlaceTask& task, PlacementReport& report) {
    try {
        report.effect = simulated(task, report.result);
    } catch (const InputError& error) {
        report.result.notes.push_back(fmt::format("not simulated: {}", error.what()));
    }
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
    if (!task.systems.empty()) add_simulated(task, report);
    return report;
}

void execute(const PlaceArguments& arguments) {
    // From the start: who stops a search that has not begun gets what it begins with.
    const Interrupt interrupt;
    PlaceTask task = load_place(arguments);
    const Placed placed = search(interrupt, task, arguments.pareto);
    if (!arguments.output.empty())  // before what takes long or can fail
        put(layout_text(placed.result.layout, task.format), arguments.output);
    const PlacementReport report = report_of(arguments, task, placed);
    put(arguments.json ? placement_json(report) : placement_text(report, wants_colour(stdout)), "");
}

}  // namespace

Command place_command() {
    const auto arguments = std::make_shared<PlaceArguments>();
    return {
        "place",
        "Place experts on GPUs from recorded routing, in the files servers load",
        place_options(*arguments),
        "Example:\n"
        "  moehub place --profile law.npy:0-0.5 --evaluate law.npy:0.5-1 --gpus 8 -o layout.json\n"
        "  moehub place --profile law.npy intent.npy@2 --gpus 16 --replicas 16 --load-blocks 4 \\\n"
        "      --model deepseek-v2-lite --machine h100-cluster --format trtllm -o layout.yaml\n"
        "  moehub place --profile new.npy --current layout.json --max-moves 40 -o next.json\n"
        "  moehub place --profile law.npy --objective gpus+4*transitions --pareto --time-limit 20",
        [arguments] { execute(*arguments); },
    };
}

}  // namespace moehub
