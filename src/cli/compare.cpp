#include "cli/compare.hpp"

#include "cli/layer_arguments.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "report/comparison.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

#include <moehub/compare.hpp>

#include <memory>

namespace moehub {
namespace {

struct Request {
    LayerArguments layer;
    std::optional<std::string> systems;
    std::optional<std::string> threads;
};

/// "a, b" as {"a", "b"}; nothing between two commas is a name, an empty one.
std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    if (text.find_first_not_of(' ') == std::string::npos) return parts;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        std::string part = text.substr(start, end - start);
        part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
        part.erase(part.find_last_not_of(' ') + 1);
        parts.push_back(std::move(part));
        start = end + 1;
    }
    return parts;
}

std::vector<std::string> all_names() {
    std::vector<std::string> names;
    for (const SystemInfo& system : all_systems()) names.push_back(system.name);
    return names;
}

Comparison run(const LayerCase& layer, const std::vector<std::string>& systems, int threads) {
    Progress progress("simulating");
    CompareOptions options;
    options.layer = layer.options;
    options.threads = threads;
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    return compare(layer.input(), systems, options);
}

void compare_command(const Request& request) {
    const LayerArguments& arguments = request.layer;
    require_writable(arguments.output);
    const auto systems = request.systems ? split(*request.systems) : all_names();
    check_systems(systems);
    const int threads =
        request.threads ? static_cast<int>(count_of("--threads", *request.threads, {1, 4096})) : 0;
    const LayerCase layer = load_layer(arguments);
    const Comparison comparison = run(layer, systems, threads);
    const bool colour = arguments.output.empty() && wants_colour(stdout);
    put(arguments.json ? to_json(layer, comparison)
                       : head_text(layer) + "\n" + table_text(comparison, colour) + "\n" +
                             bars_text(comparison) + "\n" + checks_text(comparison),
        arguments.output);
}

}  // namespace

void add_compare(CLI::App& app) {
    const auto request = std::make_shared<Request>();
    auto* const command = app.add_subcommand(
        "compare", "Simulate a MoE layer under several systems: time, speed-up, traffic");
    command
        ->add_option("--systems", request->systems,
                     "names with commas between; without it all (moehub lines)")
        ->type_name("A,B");
    add_layer_options(*command, request->layer);
    command
        ->add_option("--threads", request->threads,
                     "systems simulated at a time, same result; without it as many as cores")
        ->type_name("N");
    command->footer(
        "Example:\n  moehub compare --machine dgx-h800 --model mixtral-8x7b --gpus 8 --tokens 8192 "
        "\\\n      --systems ideal,megatron-te,moe-hub --routing normal:0.032");
    command->callback([request] { compare_command(*request); });
}

}  // namespace moehub
