#include "cli/commands.hpp"
#include "cli/model_arguments.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "report/model_report.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

#include <moehub/tp_compare.hpp>

#include <memory>

namespace moehub {
namespace {

constexpr const char* kUsualSystems = "ideal,megatron-te,moe-hub";
constexpr const char* kUsualAttention = "tp-nvls";

int int_of(std::string_view option, const std::optional<std::string>& text, std::int64_t most) {
    return text ? static_cast<int>(count_of(option, *text, {1, most})) : 0;
}

/// A divisor of the GPUs of a node.
int attention_gpus(const std::string& text, const Machine& machine) {
    const int node = machine.gpus_per_node;
    const auto gpus = static_cast<int>(count_of("--attention-tp", text, {1, node}));
    if (node % gpus != 0)
        throw InputError(fmt::format(
            "--attention-tp: found {}, allowed: divisors of the {} GPUs of a node", gpus, node));
    return gpus;
}

void run(ModelCase& model, const std::vector<SystemSpec>& systems) {
    Progress progress("simulating");
    ModelOptions options = model.options;
    options.progress = [&progress](std::size_t done, std::size_t total) {
        progress.update(done, total);
    };
    model.times = simulate_models(model.layer.input(), systems, options);
}

/// The systems of MoE layers; attention's goes into the options, with what `--set` changes.
std::vector<SystemSpec> load(const ModelArguments& arguments, std::vector<std::string> names,
                             ModelCase& model) {
    if (!arguments.attention_gpus) return load_systems(arguments.layer, names);
    if (arguments.training)
        throw InputError(
            "--attention-tp: found with --training, allowed: without it, attention's gradients "
            "under tensor parallelism are not modelled");
    const std::string attention = arguments.attention_system.value_or(kUsualAttention);
    check_tp_systems({attention});
    model.options.attention_gpus = attention_gpus(*arguments.attention_gpus, model.layer.machine);
    names.push_back(attention);
    std::vector<SystemSpec> systems = load_systems(arguments.layer, names);
    systems.pop_back();
    LayerArguments plain = arguments.layer;  // software is of MoE layers
    plain.host.reset();
    plain.fused_activation = plain.fp8 = false;
    model.options.attention_system = load_systems(plain, names).back();
    return systems;
}

void execute(const ModelArguments& request) {
    const LayerArguments& arguments = request.layer;
    require_writable(arguments.output);
    if (request.serving.asked()) return serve_model_command(request);
    require_no_serving(request.serving);
    if (is_dense(arguments)) return dense_model_command(request);
    if (request.overlap_gradients)
        throw InputError("--overlap-gradients: found with experts, allowed: with a dense model");
    const std::vector<std::string> systems = listed(request.systems.value_or(kUsualSystems));
    check_systems(systems);
    ModelCase model;
    model.options = options_of(request);
    model.layer = load_layer(arguments, LayoutLayer::mean);
    model.options.layer = model.layer.options;
    run(model, load(request, systems, model));
    const bool colour = arguments.output.empty() && wants_colour(stdout);
    put(arguments.json
            ? to_json(model)
            : head_text(model) + "\n" + parts_text(model.times, model.options.training, colour) +
                  "\n" + table_text(model.times, colour) + "\n" + bars_text(model.times) + "\n" +
                  checks_text(model),
        arguments.output);
}

}  // namespace

ModelOptions options_of(const ModelArguments& arguments) {
    constexpr std::int64_t kMostSequence = 1 << 24;
    constexpr std::int64_t kMostThreads = 4096;
    ModelOptions options;
    options.training = arguments.training;
    const Software software = software_of(arguments.layer);
    options.eager = software.host.value_or(HostMode::eager) == HostMode::eager && !arguments.graphs;
    options.sequence = int_of("--sequence", arguments.sequence, kMostSequence);
    options.threads = int_of("--threads", arguments.threads, kMostThreads);
    return options;
}

void add_model_options(std::vector<Option>& options, ModelArguments& arguments) {
    options.push_back({"--sequence", &arguments.sequence,
                       "tokens of a sequence; without it the model's. At most a GPU's tokens",
                       "N"});
    options.push_back({"--training", &arguments.training, "forward and backward"});
    options.push_back(
        {"--graphs", &arguments.graphs, "CUDA graphs outside what is simulated, no eager host"});
    options.push_back({"--overlap-gradients", &arguments.overlap_gradients,
                       "dense, training: weights' gradients while a sub-layer's rows travel"});
}

Command model_command() {
    const auto request = std::make_shared<ModelArguments>();
    std::vector<Option> options{
        {"--systems", &request->systems,
         "names or TOML files with commas between (moehub list systems); without it "
         "ideal,megatron-te,moe-hub, of a dense model ideal,tp-nvls,cais",
         "A,B"},
        {"--attention-tp", &request->attention_gpus,
         "beside experts: groups of so many GPUs share attention by tensor parallelism; without it "
         "every GPU has its own",
         "N"},
        {"--attention-system",
         &request->attention_system,
         "by which they share it; without it tp-nvls",
         "S",
         {.needs = "--attention-tp"}},
    };
    add_model_options(options, *request);
    add_serving_options(options, request->serving);
    add_layer_options(options, request->layer);
    add_software_options(options, request->layer);
    options.push_back({"--kernels", &request->layer.kernels,
                       "library of linear layers and prompts' attention: torch, trtllm; MoE layers "
                       "run torch's",
                       "LIBRARY"});
    options.push_back({"--threads", &request->threads,
                       "systems simulated at a time, same result; without it as many as cores",
                       "N"});
    return {
        "model",
        "Time a whole model under several systems: by layer type, tokens/s, MFU",
        std::move(options),
        "Example:\n  moehub model --machine dgx-h800 --model mixtral-8x7b --tokens 8192 "
        "\\\n      --systems megatron-te,moe-hub --training\n"
        "  moehub model --model llama-7b --graphs\n"
        "  moehub model --attention-tp 4 --attention-system cais\n"
        "  moehub model --decode --machine h100-cluster --gpus 72 --model deepseek-v3 "
        "\\\n      --context 2000 --batch-per-gpu 128",
        [request] { execute(*request); },
    };
}

}  // namespace moehub
