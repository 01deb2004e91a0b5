#include "request/place_answer.hpp"

#include "request/place_choice.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

std::vector<ParetoPoint> front_of(const PlaceTask& task, const Placed& placed,
                                  const PlacementReport& report) {
    std::vector<ParetoPoint> points{{task.options.method, placed.result.objective,
                                     task.options.load_cap, task.options.time_limit,
                                     mean_table(report.judged()).found()}};
    points.insert(points.end(), placed.points.begin(), placed.points.end());
    return pareto_front(points);
}

}  // namespace

Placed search_layout(PlaceTask& task, bool pareto, const SearchWatch& watch) {
    PlaceOptions& options = task.options;
    options.stop = watch.stop;
    const double parts = pareto ? 2 : 1;
    options.time_limit /= parts;
    const auto from = [&](double begin) -> std::function<void(double, double)> {
        if (!watch.progress) return {};
        return
            [&watch, begin, parts](double share, double) { watch.progress(begin + share / parts); };
    };
    options.progress = from(0);
    if (pareto) pareto_tries(task.input, options);  // refuses what cannot be, before long work
    Placed placed;
    placed.result = place(task.input, options);
    placed.interrupted = watch.stop.stop_requested();
    if (pareto) {
        options.progress = from(0.5);
        placed.points = place_pareto(task.input, options, task.held_out);
        if (watch.stop.stop_requested())
            placed.result.notes.emplace_back(
                "interrupted: other objectives and caps were not all tried");
    }
    options.progress = {};
    return placed;
}

bool take_fastest(PlaceTask& task, Placed& placed) {
    LayoutChoice choice = choose_layout(task, placed.result);
    placed.effect = std::move(choice.effect);
    auto notes = std::move(choice.notes);
    placed.taken = choice.taken.name;
    const bool another = placed.taken != task.options.method;
    task.options = std::move(choice.taken.options);
    placed.result = std::move(choice.taken.result);
    placed.result.notes.insert(placed.result.notes.begin(), notes.begin(), notes.end());
    return another;
}

void note_layers_in_order(const PlaceTask& task, Placed& placed) {
    const int placed_layers = placed.result.layout.layers();
    if (!task.model || placed_layers >= task.model->moe_layers()) return;
    placed.result.notes.push_back(fmt::format(
        "The profile has {} of the model's {} MoE layers; in the others experts stay in order.",
        placed_layers, task.model->moe_layers()));
}

PlacementReport report_of(const PlaceArguments& arguments, const PlaceTask& task,
                          const Placed& placed) {
    PlacementReport report =
        placement_report({task.input, task.options, placed.result, task.held_out});
    report.machine = arguments.machine;
    report.model = arguments.profiles.model;
    report.interrupted = placed.interrupted;
    report.file = {arguments.output, task.format};
    if (arguments.json || arguments.html.asked())
        report.pairs = pair_traffic(task.held_out.empty() ? task.input.profiles : task.held_out,
                                    placed.result.layout);
    if (arguments.pareto) report.pareto = front_of(task, placed, report);
    report.effect = placed.effect;
    report.taken = placed.taken;
    return report;
}

}  // namespace moehub
