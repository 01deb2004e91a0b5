// From what was typed to whole models.
#include "request/model_arguments.hpp"
#include "request/values.hpp"

#include <moehub/compare.hpp>
#include <moehub/tp_compare.hpp>

namespace moehub {
namespace {

constexpr const char* kUsualSystems = "ideal,megatron-te,moe-hub";
constexpr const char* kUsualDenseSystems = "ideal,tp-nvls,cais";
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

void refuse_attention(const ModelArguments& arguments, const std::string& model) {
    for (const auto& [option, typed] :
         {std::pair("--attention-tp", arguments.attention_gpus.has_value()),
          std::pair("--attention-system", arguments.attention_system.has_value())})
        if (typed)
            throw InputError(
                fmt::format("{}: found with model {}, which is dense: all of it is under tensor "
                            "parallelism, allowed: with experts",
                            option, moehub::quoted(model)));
}

}  // namespace

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

ModelOptions options_of(const ModelArguments& arguments) {
    constexpr std::int64_t kMostSequence = 1 << 24;
    constexpr std::int64_t kMostThreads = 4096;
    ModelOptions options;
    options.training = arguments.training;
    options.baseline = arguments.layer.baseline;
    const Software software = software_of(arguments.layer);
    options.eager = software.host.value_or(HostMode::eager) == HostMode::eager && !arguments.graphs;
    options.sequence = int_of("--sequence", arguments.sequence, kMostSequence);
    options.threads = int_of("--threads", arguments.threads, kMostThreads);
    return options;
}

ModelCase load_moe_model(const ModelArguments& arguments, const LayerNouns& given) {
    if (arguments.overlap_gradients)
        throw InputError("--overlap-gradients: found with experts, allowed: with a dense model");
    if (given.systems == nullptr) check_systems(listed(arguments.systems.value_or(kUsualSystems)));
    ModelCase model;
    model.options = options_of(arguments);
    model.layer = load_layer(arguments.layer, LayoutLayer::mean, given);
    model.options.layer = model.layer.options;
    return model;
}

std::vector<SystemSpec> load_systems(const ModelArguments& arguments, ModelCase& model,
                                     const LayerNouns& given) {
    std::vector<std::string> names;
    if (given.systems == nullptr) names = listed(arguments.systems.value_or(kUsualSystems));
    const auto own = [&](const std::vector<std::string>& all) {
        return given.systems == nullptr ? load_systems(arguments.layer, all)
                                        : given_systems(arguments.layer, *given.systems);
    };
    if (!arguments.attention_gpus) return own(names);
    if (arguments.training)
        throw InputError(
            "--attention-tp: found with --training, allowed: without it, attention's gradients "
            "under tensor parallelism are not modelled");
    const std::string attention = arguments.attention_system.value_or(kUsualAttention);
    check_tp_systems({attention});
    model.options.attention_gpus = attention_gpus(*arguments.attention_gpus, model.layer.machine);
    names.push_back(attention);
    std::vector<SystemSpec> systems = own(names);
    if (given.systems == nullptr) systems.pop_back();
    LayerArguments plain = arguments.layer;  // software is of MoE layers
    plain.host.reset();
    plain.fused_activation = plain.fp8 = false;
    model.options.attention_system = load_systems(plain, names).back();
    return systems;
}

DenseCase load_dense_model(const ModelArguments& arguments, const LayerNouns& given) {
    DenseCase model;
    model.layer = load_dense(arguments.layer, given);
    refuse_attention(arguments, model.layer.model_name);
    if (given.systems == nullptr)
        check_tp_systems(listed(arguments.systems.value_or(kUsualDenseSystems)));
    model.options = options_of(arguments);
    if (arguments.overlap_gradients && !arguments.training)
        throw InputError("--overlap-gradients: found without --training, allowed: with it");
    model.options.overlap_gradients = arguments.overlap_gradients;
    model.options.layer.grain = model.layer.options.grain;
    model.options.layer.verify = model.layer.options.verify;
    if (model.options.training)
        model.layer.parts.insert(model.layer.parts.end(), {SubLayer::l3, SubLayer::l4});
    return model;
}

std::vector<SystemSpec> load_dense_systems(const ModelArguments& arguments,
                                           const LayerNouns& given) {
    if (given.systems != nullptr) return given_systems(arguments.layer, *given.systems);
    return load_systems(arguments.layer, listed(arguments.systems.value_or(kUsualDenseSystems)));
}

}  // namespace moehub
