#include "cli/commands.hpp"
#include "cli/layer_arguments.hpp"
#include "cli/output.hpp"
#include "cli/tp_commands.hpp"
#include "report/comparison.hpp"
#include "report/layer_page.hpp"
#include "report/table.hpp"

#include <moehub/compare.hpp>

#include <memory>

namespace moehub {
namespace {

struct Request {
    LayerArguments layer;
    std::optional<std::string> system;
};

void execute(const Request& request) {
    const LayerArguments& arguments = request.layer;
    require_writable(arguments.output);
    require_writable(arguments.html, arguments.output);
    if (wants_tp(arguments)) return run_tp_command(arguments, request.system);
    const std::string system = request.system.value_or("moe-hub");
    check_systems({system});
    const LayerCase layer = load_layer(arguments);
    CompareOptions options;
    options.layer = layer.options;
    const Comparison one =
        compare_systems(layer.input(), load_systems(arguments, {system}), options);
    if (arguments.html.asked())
        put_page(arguments.html, comparison_page(layer, one), to_json(layer, one));
    put_trace(arguments.trace, traced(one));
    const bool colour = arguments.output.empty() && wants_colour(stdout);
    put(arguments.json
            ? to_json(layer, one)
            : head_text(layer) + "\n" + table_text(one, colour) + "\n" + bars_text(one) + "\n" +
                  statistics_text(one.rows.front().result, colour) + "\n" + checks_text(one),
        arguments.output);
}

}  // namespace

Command run_command() {
    const auto request = std::make_shared<Request>();
    std::vector<Option> options{
        {"--system", &request->system,
         "preset or TOML file (moehub list systems); without it moe-hub, of --layer-type tp cais",
         "S"}};
    add_layer_type_options(options, request->layer);
    add_layer_options(options, request->layer);
    add_pass_option(options, request->layer);
    add_software_options(options, request->layer);
    add_trace_options(options, request->layer.trace);
    return {
        "run",
        "Simulate a MoE or tensor-parallel layer under one system, with what its units counted",
        std::move(options),
        "Example:\n  moehub run --system moe-hub --set moe_hub.rat_entries=16 --grain packet\n"
        "  moehub run --layer-type tp --system cais --sublayer L2",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
