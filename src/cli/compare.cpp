#include "cli/commands.hpp"
#include "cli/layer_arguments.hpp"
#include "cli/output.hpp"
#include "cli/sweep_arguments.hpp"
#include "cli/tp_commands.hpp"
#include "cli/values.hpp"
#include "report/comparison.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Request {
    LayerArguments layer;
    SweepArguments sweep;
    std::optional<std::string> systems;
    std::optional<std::string> threads;
};

struct Usual {
    std::vector<std::string> names;
    std::string left_out;  ///< a sentence; empty: nothing
};

constexpr std::string_view kAblations[] = {
    "mh-base", "mh-pkt", "mh-dep", "dysharp-basic", "dysharp-comet", "fusion-only", "steps-only"};

constexpr std::string_view kSuperseded[] = {"deepep-single-qp", "deepep-ll-rdma"};

/// Without a list: all systems that can run the layer, but for the proposals' ablations, what later
/// versions replaced, and those that compute in FP8, which the others do not.
Usual usual_systems(const LayerCase& layer) {
    Usual usual;
    std::vector<std::string> out;
    const bool fp8 = layer.software.fp8.value_or(false);
    for (const SystemInfo& system : all_systems()) {
        const SystemSpec published = load_system(system.name);
        const auto is_one_of = [&](const auto& names) {
            return std::find(std::begin(names), std::end(names), system.name) != std::end(names);
        };
        if (is_one_of(kAblations) || is_one_of(kSuperseded)) continue;
        if (published.overlap_passes) {
            out.push_back(published.name + " (whole models: moehub model --training)");
            continue;
        }
        if (published.once_per_node && layer.machine.nodes == 1) {
            out.push_back(published.name + " (in one node as without -relay)");
            continue;
        }
        if (published.narrow_experts() && !fp8) {
            out.push_back(published.name + " (computes in FP8: --fp8)");
            continue;
        }
        try {
            check_layer(layer.input(), with_software(published, layer.software), layer.options);
            usual.names.push_back(published.name);
        } catch (const InputError&) {
            out.push_back(published.name + " (asked for by name, it says why)");
        }
    }
    out.push_back(fmt::format("earlier versions {}", fmt::join(kSuperseded, ", ")));
    out.push_back(fmt::format("ablations {}", fmt::join(kAblations, ", ")));
    usual.left_out = fmt::format("Left out: {}.\n", fmt::join(out, ", "));
    return usual;
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

/// As the sweep command with the same options.
void sweep(const Request& request) {
    SweepArguments arguments = request.sweep;
    arguments.model.layer = request.layer;
    arguments.systems = request.systems;
    arguments.threads = request.threads;
    if (wants_tp(request.layer)) arguments.kind = "tp";
    run_sweep_command(arguments);
}

void execute(const Request& request) {
    if (!request.sweep.sweep.empty()) return sweep(request);
    const LayerArguments& arguments = request.layer;
    require_writable(arguments.output);
    const int threads =
        request.threads ? static_cast<int>(count_of("--threads", *request.threads, {1, 4096})) : 0;
    if (wants_tp(arguments)) return compare_tp_command(arguments, request.systems, threads);
    if (request.systems) check_systems(listed(*request.systems));
    const LayerCase layer = load_layer(arguments);
    const Usual usual =
        request.systems ? Usual{listed(*request.systems), ""} : usual_systems(layer);
    const Comparison comparison = run(layer, load_systems(arguments, usual.names), threads);
    const bool colour = arguments.output.empty() && wants_colour(stdout);
    put(arguments.json ? to_json(layer, comparison)
                       : head_text(layer) + "\n" + table_text(comparison, colour) + "\n" +
                             bars_text(comparison) + "\n" + software_text(comparison) +
                             usual.left_out + checks_text(comparison),
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
    add_pass_option(options, request->layer);
    add_software_options(options, request->layer);
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
