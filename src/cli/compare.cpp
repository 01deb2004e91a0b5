#include "cli/commands.hpp"
#include "cli/html_output.hpp"
#include "cli/output.hpp"
#include "cli/sweep_command.hpp"
#include "cli/tp_commands.hpp"
#include "cli/trace.hpp"
#include "report/comparison.hpp"
#include "report/document.hpp"
#include "report/layer_page.hpp"
#include "report/progress.hpp"
#include "request/layer_arguments.hpp"
#include "request/values.hpp"
#include "study/usual_systems.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>

#include <memory>

#include <fmt/format.h>

namespace moehub {
namespace {

struct Request {
    LayerArguments layer;
    SweepArguments sweep;
    std::optional<std::string> systems;
    std::optional<std::string> threads;
};

Comparison run(const LayerCase& layer, const std::vector<SystemSpec>& systems,
               CompareOptions options) {
    Progress progress("simulating");
    options.layer = layer.options;
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    return compare_systems(layer.input(), systems, options);
}

/// As the sweep command with the same options.
void sweep(const Request& request) {
    SweepArguments arguments = request.sweep;
    arguments.model.layer = request.layer;
    arguments.systems = request.systems;
    arguments.threads = request.threads;
    if (!request.layer.baseline.empty()) arguments.baseline = request.layer.baseline;
    if (!request.layer.trace.file.empty())
        throw InputError("--trace: found with --sweep, allowed: of a single comparison");
    if (wants_tp(request.layer)) arguments.kind = "tp";
    run_sweep_command(arguments);
}

void execute(const Request& request) {
    if (!request.sweep.sweep.empty()) return sweep(request);
    const LayerArguments& arguments = request.layer;
    require_writable({output_file("-o", arguments.output), html_file(arguments.html),
                      output_file("--trace", arguments.trace.file)});
    CompareOptions options;
    options.baseline = arguments.baseline;
    if (request.threads)
        options.threads = static_cast<int>(count_of("--threads", *request.threads, {1, 4096}));
    if (wants_tp(arguments)) return compare_tp_command(arguments, request.systems, options.threads);
    if (request.systems) check_systems(listed(*request.systems));
    const LayerCase layer = load_layer(arguments);
    UsualSystems usual;
    if (request.systems)
        usual.names = listed(*request.systems);
    else
        usual = usual_systems(layer);
    Comparison comparison = run(layer, load_systems(arguments, usual.names), options);
    comparison.left_out = std::move(usual.left_out);
    const auto document = [&] {
        return document_text("compare", comparison_json(layer, comparison));
    };
    if (arguments.html.asked())
        put_page(arguments.html, comparison_page(layer, comparison), document());
    put_trace(arguments.trace, traced(comparison));
    const TextStyle style = style_for(arguments.output);
    put(arguments.json
            ? document()
            : fitted(head_text(layer) + "\n" + table_text(comparison, style) + "\n" +
                         bars_text(comparison, style) + "\n" + software_text(comparison) +
                         left_out_text(comparison.left_out) + checks_text(comparison),
                     style.width),
        arguments.output);
}

}  // namespace

Command compare_command() {
    const auto request = std::make_shared<Request>();
    std::vector<Option> options{
        {"--systems", &request->systems,
         "names or TOML files with commas between (moehub list systems); without it all that can "
         "run this",
         "A,B"}};
    add_layer_type_options(options, request->layer);
    add_layer_options(options, request->layer);
    options.push_back(baseline_option(request->layer.baseline));
    add_pass_option(options, request->layer);
    add_software_options(options, request->layer);
    add_trace_options(options, request->layer.trace);
    add_sweep_options(options, request->sweep, {.needs = "--sweep"});
    options.push_back({"--threads", &request->threads,
                       "systems simulated at a time, same result; without it as many as cores",
                       "N"});
    return {
        "compare",
        "Simulate a MoE or tensor-parallel layer under several systems: time, speed-up, traffic",
        std::move(options),
        "Example:\n  moehub compare --machine dgx-h800 --model mixtral-8x7b --gpus 8 --tokens 8192 "
        "\\\n      --systems ideal,megatron-te,moe-hub --routing normal:0.032\n"
        "  moehub compare --layer-type tp --sublayer all --systems ideal,tp-nvls,cais",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
