#include "cli/commands.hpp"
#include "cli/layer_arguments.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "report/comparison.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <memory>

namespace moehub {
namespace {

struct Request {
    LayerArguments layer;
    std::optional<std::string> systems;
    std::optional<std::string> threads;
};

/// Without a list: all systems that can run the layer, but for moe-hub's ablations and those that
/// compute in FP8, which the others do not.
std::vector<std::string> usual_systems(const LayerCase& layer) {
    std::vector<std::string> names;
    for (const SystemInfo& system : all_systems()) {
        const SystemSpec published = load_system(system.name);
        const SystemSpec spec = with_software(published, layer.software);
        const bool fp8 = layer.software.fp8.value_or(false);
        if (spec.name.starts_with("mh-") || (published.fp8_experts && !fp8)) continue;
        try {
            check_layer(layer.input(), spec, layer.options);
            names.push_back(spec.name);
        } catch (const InputError&) {
            // Told by its absence; asked for by name, it says why.
        }
    }
    return names;
}

Comparison run(const LayerCase& layer, const std::vector<SystemSpec>& systems, int threads) {
    Progress progress("simulating");
    CompareOptions options;
    options.layer = layer.options;
    options.threads = threads;
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    return compare_systems(layer.input(), systems, options);
}

void execute(const Request& request) {
    const LayerArguments& arguments = request.layer;
    require_writable(arguments.output);
    if (request.systems) check_systems(listed(*request.systems));
    const int threads =
        request.threads ? static_cast<int>(count_of("--threads", *request.threads, {1, 4096})) : 0;
    const LayerCase layer = load_layer(arguments);
    const auto names = request.systems ? listed(*request.systems) : usual_systems(layer);
    const Comparison comparison = run(layer, load_systems(arguments, names), threads);
    const bool colour = arguments.output.empty() && wants_colour(stdout);
    put(arguments.json ? to_json(layer, comparison)
                       : head_text(layer) + "\n" + table_text(comparison, colour) + "\n" +
                             bars_text(comparison) + "\n" + software_text(comparison) +
                             checks_text(comparison),
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
    add_layer_options(options, request->layer);
    add_pass_option(options, request->layer);
    add_software_options(options, request->layer);
    options.push_back({"--threads", &request->threads,
                       "systems simulated at a time, same result; without it as many as cores",
                       "N"});
    return {
        "compare",
        "Simulate a MoE layer under several systems: time, speed-up, traffic",
        std::move(options),
        "Example:\n  moehub compare --machine dgx-h800 --model mixtral-8x7b --gpus 8 --tokens 8192 "
        "\\\n      --systems ideal,megatron-te,moe-hub --routing normal:0.032",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
