#include "cli/tp_commands.hpp"

#include "cli/output.hpp"
#include "cli/values.hpp"
#include "report/comparison.hpp"
#include "report/layer_page.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"
#include "report/tp_comparison.hpp"

#include <moehub/presets.hpp>

#include <algorithm>

namespace moehub {
namespace {

constexpr std::string_view kAblations[] = {"cais-base", "cais-partial", "cais-uncoordinated"};

struct Usual {
    std::vector<std::string> names;
    std::string left_out;  ///< a sentence; empty: nothing
};

bool runs(const TpCase& layer, const SystemSpec& system) {
    try {
        for (const SubLayer part : layer.parts)
            check_tp({layer.machine, layer.model, layer.tokens, part}, system, layer.options);
        return true;
    } catch (const InputError&) {
        return false;
    }
}

Usual usual_systems(const TpCase& layer) {
    Usual usual;
    std::vector<std::string> out;
    for (const SystemInfo& system : all_tp_systems()) {
        if (std::find(std::begin(kAblations), std::end(kAblations), system.name) !=
            std::end(kAblations))
            continue;
        if (runs(layer, load_system(system.name)))
            usual.names.push_back(system.name);
        else
            out.push_back(system.name + " (asked for by name, it says why)");
    }
    out.push_back(fmt::format("ablations {}", fmt::join(kAblations, ", ")));
    usual.left_out = fmt::format("Left out: {}.\n", fmt::join(out, ", "));
    // Where none can, the first says why.
    if (usual.names.empty()) usual.names.push_back(all_tp_systems().front().name);
    return usual;
}

std::vector<Comparison> simulate(const TpCase& layer, const std::vector<SystemSpec>& systems,
                                 int threads) {
    Progress progress("simulating");
    TpCompareOptions options;
    options.layer = layer.options;
    options.threads = threads;
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    return compare_tp_parts(layer.input(), layer.parts, systems, options);
}

bool colour_for(const LayerArguments& arguments) {
    return arguments.output.empty() && wants_colour(stdout);
}

}  // namespace

void compare_tp_command(const LayerArguments& arguments, const std::optional<std::string>& systems,
                        int threads) {
    if (systems) check_tp_systems(listed(*systems));
    const TpCase layer = load_tp(arguments, true);
    const Usual usual = systems ? Usual{listed(*systems), ""} : usual_systems(layer);
    const std::vector<Comparison> parts =
        simulate(layer, load_systems(arguments, usual.names), threads);
    put_trace(arguments.trace, traced(layer, parts));
    const Comparison sum = sum_of(parts);
    if (arguments.html.asked())
        put_page(arguments.html, tp_comparison_page(layer, parts), to_json(layer, parts));
    put(arguments.json
            ? to_json(layer, parts)
            : head_text(layer) + "\n" + tp_table_text(layer, parts, colour_for(arguments)) + "\n" +
                  bars_text(sum) + "\n" + usual.left_out + tp_checks_text(layer, sum),
        arguments.output);
}

void run_tp_command(const LayerArguments& arguments, const std::optional<std::string>& system) {
    const std::string name = system.value_or("cais");
    check_tp_systems({name});
    const TpCase layer = load_tp(arguments, false);
    const std::vector<Comparison> parts = simulate(layer, load_systems(arguments, {name}), 1);
    if (arguments.html.asked())
        put_page(arguments.html, tp_comparison_page(layer, parts), to_json(layer, parts));
    const Comparison& one = parts.front();
    put_trace(arguments.trace, traced(layer, parts));
    const bool colour = colour_for(arguments);
    const ComparisonRow& row = one.rows.front();
    std::string dataflow = dataflow_text(layer.input(), row.system);
    if (!dataflow.empty()) dataflow += "\n";
    put(arguments.json
            ? to_json(layer, parts)
            : head_text(layer) + "\n" + tp_table_text(one, colour) + "\n" + bars_text(one) + "\n" +
                  dataflow + statistics_text(row.result, colour, "tokens") + "\n" +
                  tp_checks_text(layer, one),
        arguments.output);
}

}  // namespace moehub
