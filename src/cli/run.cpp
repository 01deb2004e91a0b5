#include "cli/commands.hpp"
#include "cli/html_output.hpp"
#include "cli/output.hpp"
#include "cli/tp_commands.hpp"
#include "cli/trace.hpp"
#include "report/comparison.hpp"
#include "report/document.hpp"
#include "report/layer_page.hpp"
#include "request/layer_arguments.hpp"

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
    require_writable({output_file("-o", arguments.output), html_file(arguments.html),
                      output_file("--trace", arguments.trace.file)});
    if (wants_tp(arguments)) return run_tp_command(arguments, request.system);
    const std::string system = request.system.value_or("moe-hub");
    check_systems({system});
    const LayerCase layer = load_layer(arguments);
    CompareOptions options;
    options.layer = layer.options;
    const Comparison one =
        compare_systems(layer.input(), load_systems(arguments, {system}), options);
    const auto document = [&] { return document_text("run", comparison_json(layer, one)); };
    if (arguments.html.asked()) put_page(arguments.html, comparison_page(layer, one), document());
    put_trace(arguments.trace, traced(one));
    const TextStyle style = style_for(arguments.output);
    put(arguments.json
            ? document()
            : fitted(head_text(layer) + "\n" + table_text(one, style) + "\n" +
                         bars_text(one, style) + "\n" +
                         statistics_text(one.rows.front().result, style) + "\n" + checks_text(one),
                     style.width),
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
