#include "cli/commands.hpp"
#include "cli/layer_arguments.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "report/comparison.hpp"
#include "report/model_report.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

#include <moehub/compare.hpp>

#include <algorithm>
#include <memory>

namespace moehub {
namespace {

struct Request {
    LayerArguments layer;
    std::string systems = "ideal,megatron-te,moe-hub";
    std::optional<std::string> sequence;
    std::optional<std::string> threads;
    bool training = false;
    bool graphs = false;
};

int int_of(std::string_view option, const std::optional<std::string>& text, std::int64_t most) {
    return text ? static_cast<int>(count_of(option, *text, {1, most})) : 0;
}

ModelOptions options_of(const Request& request) {
    constexpr std::int64_t kMostSequence = 1 << 24;
    constexpr std::int64_t kMostThreads = 4096;
    ModelOptions options;
    options.training = request.training;
    const Software software = software_of(request.layer);
    options.eager = software.host.value_or(HostMode::eager) == HostMode::eager && !request.graphs;
    options.sequence = int_of("--sequence", request.sequence, kMostSequence);
    options.threads = int_of("--threads", request.threads, kMostThreads);
    return options;
}

void run(ModelCase& model, const std::vector<SystemSpec>& systems) {
    Progress progress("simulating");
    ModelOptions options = model.options;
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    model.times = simulate_models(model.layer.input(), systems, options);
}

/// What was checked in the simulated layers, forward.
std::string checks_text(const ModelCase& model) {
    Comparison layers;
    for (const ModelTime& time : model.times) layers.rows.push_back({time.spec, time.moe, 1, {}});
    return checks_text(layers);
}

void execute(const Request& request) {
    const LayerArguments& arguments = request.layer;
    require_writable(arguments.output);
    const std::vector<std::string> systems = listed(request.systems);
    check_systems(systems);
    ModelCase model;
    model.options = options_of(request);
    model.layer = load_layer(arguments);
    model.options.layer = model.layer.options;
    run(model, load_systems(arguments, systems));
    const bool colour = arguments.output.empty() && wants_colour(stdout);
    put(arguments.json
            ? to_json(model)
            : head_text(model) + "\n" + parts_text(model, colour) + "\n" +
                  table_text(model, colour) + "\n" + bars_text(model) + "\n" + checks_text(model),
        arguments.output);
}

}  // namespace

Command model_command() {
    const auto request = std::make_shared<Request>();
    std::vector<Option> options{
        {"--systems", &request->systems,
         "names or TOML files with commas between (moehub list systems)", "A,B"},
        {"--sequence", &request->sequence,
         "tokens of a sequence; without it the model's. At most a GPU's tokens", "N"},
        {"--training", &request->training, "forward and backward"},
        {"--graphs", &request->graphs, "CUDA graphs outside the MoE layers, no eager host"},
    };
    add_layer_options(options, request->layer);
    add_software_options(options, request->layer);
    options.push_back({"--threads", &request->threads,
                       "systems simulated at a time, same result; without it as many as cores",
                       "N"});
    return {
        "model",
        "Time a whole model under several systems: by layer type, tokens/s, MFU",
        std::move(options),
        "Example:\n  moehub model --machine dgx-h800 --model mixtral-8x7b --tokens 8192 "
        "\\\n      --systems megatron-te,moe-hub --training",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
