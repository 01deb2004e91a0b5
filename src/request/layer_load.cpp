// From what was typed to what is simulated.
#include "request/layer_arguments.hpp"
#include "request/layer_layout.hpp"
#include "request/layer_routing.hpp"
#include "request/values.hpp"
#include "study/collective_names.hpp"
#include "study/system_names.hpp"

#include <moehub/predict.hpp>
#include <moehub/presets.hpp>

#include <limits>

#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr const char* kUsualMachine = "dgx-h800";
constexpr const char* kUsualModel = "mixtral-8x7b";
constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();
constexpr std::string_view kModelPrefix = "model.";
constexpr std::string_view kSystemPrefix = "system.";

int int_of(std::string_view option, const std::string& text, Range allowed) {
    return static_cast<int>(count_of(option, text, allowed));
}

Model model_with_experts(const LayerArguments& arguments, const LayerNouns& given) {
    const std::string name = model_name(arguments, given, kUsualModel);
    Model model = model_of(arguments, name, given);
    if (model.experts == 0)
        throw InputError(
            fmt::format("--model: found {}, which has no experts, allowed: a model "
                        "with experts",
                        moehub::quoted(name)));
    return model;
}

void check_tokens(const LayerCase& made) {
    if (made.routing.tokens >= made.machine.gpus()) return;
    throw InputError(
        fmt::format("--tokens: found {}, allowed: at least one for each of the {} "
                    "GPUs",
                    made.routing.tokens, made.machine.gpus()));
}

void check_copies(const LayerArguments& arguments, bool layout) {
    if (arguments.replicas && layout)
        throw InputError(
            "--replicas: found with --layout, whose file says which experts have copies, allowed: "
            "one of the two");
    if (arguments.replica_policy && !arguments.replicas && !layout)
        throw InputError(
            "--replica-policy: found without --replicas or --layout, allowed: with "
            "one of them");
}

Placement placement_of(const LayerCase& made) {
    const Placement placement = contiguous_placement(
        made.model.experts, made.machine.gpus() / made.options.tensor_parallel);
    if (made.replicas == 0) return placement;
    std::vector<long long> rows(static_cast<std::size_t>(made.model.experts));
    for (const std::uint16_t expert : made.routing.chosen) ++rows[expert];
    return with_replicas(placement, rows, made.replicas);
}

ReplicaPolicy policy_of(const std::string& name) {
    std::optional<ReplicaPolicy> policy;
    if (name == "round-robin") policy = ReplicaPolicy::round_robin;
    if (name == "least-loaded") policy = ReplicaPolicy::least_loaded;
    return named("--replica-policy", name, policy, {"round-robin", "least-loaded"});
}

Pass pass_of(const std::string& name) {
    std::optional<Pass> pass;
    if (name == "forward") pass = Pass::forward;
    if (name == "backward") pass = Pass::backward;
    return named("--pass", name, pass, {"forward", "backward"});
}

/// "NAME.KEY=VALUE" of one of the systems: the part behind the name; empty for another's.
std::string setting_for(const std::string& name, std::string_view setting) {
    if (!setting.starts_with(name + ".")) return "";
    return std::string(setting.substr(name.size() + 1));
}

/// A noun that is given has its settings already.
void refuse_settings(const Overrides& settings, std::string_view noun) {
    if (settings.empty()) return;
    throw InputError(
        fmt::format("--set: found {} beside a {} that is given, allowed: where it is "
                    "made",
                    moehub::quoted(settings.front()), noun));
}

LayerOptions options_of(const LayerArguments& arguments, int gpus) {
    LayerOptions options;
    options.grain = named("--grain", arguments.grain, grain_named(arguments.grain), grain_names());
    options.tensor_parallel = int_of("--tp", arguments.tensor_parallel.value_or("1"), {1, gpus});
    if (gpus % options.tensor_parallel != 0)
        throw InputError(fmt::format("--tp: found {}, allowed: divisors of the {} GPUs",
                                     options.tensor_parallel, gpus));
    options.replicas = policy_of(arguments.replica_policy.value_or("round-robin"));
    if (arguments.region_rows)
        options.region_rows = count_of("--region-rows", *arguments.region_rows, {1, kMostTokens});
    if (arguments.page_rows)
        options.page_rows = int_of("--page-rows", *arguments.page_rows, {1, kMostTokens});
    if (arguments.page_pool) options.page_pool = size_of("--page-pool", *arguments.page_pool);
    options.pass = pass_of(arguments.pass.value_or("forward"));
    options.verify = arguments.verify;
    options.timeline = timeline_of(arguments.trace);
    options.timeline.record |= arguments.html.asked();
    return options;
}

}  // namespace

std::string machine_name(const LayerArguments& arguments, const LayerNouns& given,
                         const char* usual) {
    return given.machine != nullptr ? given.machine->name : arguments.machine.value_or(usual);
}

std::string model_name(const LayerArguments& arguments, const LayerNouns& given,
                       const char* usual) {
    return given.model != nullptr ? given.model->name : arguments.model.value_or(usual);
}

Machine machine_of(const LayerArguments& arguments, const std::string& name,
                   const LayerNouns& given) {
    Overrides settings;
    for (const std::string& one : arguments.settings)
        if (!one.starts_with(kModelPrefix) && !one.starts_with(kSystemPrefix))
            settings.push_back(one);
    if (given.machine != nullptr) refuse_settings(settings, "machine");
    Machine machine =
        given.machine != nullptr ? given.machine->value : load_machine(name, settings);
    try {
        machine.gpu = with_kernels(machine.gpu, arguments.kernels);
    } catch (const InputError& error) {
        throw InputError(fmt::format("--kernels: {}: {}", machine.gpu_name, error.what()));
    }
    if (!arguments.gpus) return machine;
    const int most = machine.max_gpus > 0 ? machine.max_gpus : machine.gpus();
    return with_gpus(machine, int_of("--gpus", *arguments.gpus, {1, most}));
}

std::optional<std::int64_t> asked_tokens(const LayerArguments& arguments, int gpus) {
    if (arguments.tokens) return count_of("--tokens", *arguments.tokens, {1, kMostTokens});
    if (!arguments.tokens_per_gpu) return std::nullopt;
    return gpus * count_of("--tokens-per-gpu", *arguments.tokens_per_gpu, {1, kMostTokens / gpus});
}

std::vector<std::string> settings_of(const LayerArguments& arguments, const LayerNouns& given) {
    std::vector<std::string> settings;
    if (given.machine != nullptr) settings = given.machine->settings;
    if (given.model != nullptr)
        for (const std::string& one : given.model->settings)
            settings.push_back(std::string(kModelPrefix) + one);
    settings.insert(settings.end(), arguments.settings.begin(), arguments.settings.end());
    if (arguments.kernels != "torch") settings.push_back("kernels=" + arguments.kernels);
    return settings;
}

Model model_of(const LayerArguments& arguments, const std::string& name, const LayerNouns& given) {
    Overrides settings;
    for (const std::string& one : arguments.settings)
        if (one.starts_with(kModelPrefix)) settings.push_back(one.substr(kModelPrefix.size()));
    if (given.model == nullptr) return load_model(name, settings);
    refuse_settings(settings, "model");
    return given.model->value;
}

bool is_dense(const LayerArguments& arguments, const LayerNouns& given) {
    return model_of(arguments, arguments.model.value_or(kUsualModel), given).experts == 0;
}

Software software_of(const LayerArguments& arguments) {
    Software software;
    if (arguments.host) {
        if (*arguments.host == "eager") software.host = HostMode::eager;
        if (*arguments.host == "graph") software.host = HostMode::graph;
        named("--host", *arguments.host, software.host, {"eager", "graph"});
    }
    if (arguments.fused_activation) software.fused_activation = true;
    if (arguments.fp8) software.fp8 = true;
    return software;
}

std::vector<SystemSpec> load_systems(const LayerArguments& arguments,
                                     const std::vector<std::string>& names) {
    std::vector<Overrides> settings(names.size());
    for (const std::string& one : arguments.settings) {
        if (!one.starts_with(kSystemPrefix)) continue;
        const std::string_view rest = std::string_view(one).substr(kSystemPrefix.size());
        bool taken = false;
        for (std::size_t i = 0; i < names.size(); ++i) {
            const std::string setting = setting_for(load_system(names[i]).name, rest);
            if (setting.empty()) continue;
            settings[i].push_back(setting);
            taken = true;
        }
        if (!taken)
            throw InputError(
                fmt::format("--set: found {}, allowed: system.NAME.KEY=VALUE with one "
                            "of the systems simulated: {}",
                            moehub::quoted(one), fmt::join(names, ", ")));
    }
    std::vector<SystemSpec> systems;
    for (std::size_t i = 0; i < names.size(); ++i) {
        systems.push_back(
            with_software(load_system(names[i], settings[i]), software_of(arguments)));
    }
    return systems;
}

std::vector<SystemSpec> given_systems(const LayerArguments& arguments,
                                      const std::vector<SystemSpec>& given) {
    for (const std::string& one : arguments.settings)
        if (one.starts_with(kSystemPrefix)) refuse_settings({one}, "system");
    check_unlike(given);
    std::vector<SystemSpec> systems;
    for (const SystemSpec& one : given)
        systems.push_back(with_software(one, software_of(arguments)));
    return systems;
}

LayerCase load_layer(const LayerArguments& arguments, LayoutLayer usual, const LayerNouns& given) {
    LayerCase made;
    made.machine_name = machine_name(arguments, given, kUsualMachine);
    made.model_name = model_name(arguments, given, kUsualModel);
    made.settings = settings_of(arguments, given);
    made.machine = machine_of(arguments, made.machine_name, given);
    made.model = model_with_experts(arguments, given);
    check_copies(arguments, arguments.layout || given.layout != nullptr);
    made.options = options_of(arguments, made.machine.gpus());
    made.software = software_of(arguments);
    made.replicas = int_of("--replicas", arguments.replicas.value_or("0"), {0, kMostInt});
    const int ranks = made.machine.gpus() / made.options.tensor_parallel;
    std::optional<ExpertLayout> layout;
    if (given.layout != nullptr)
        layout = fitting_layout(*given.layout, made.model, ranks);
    else if (arguments.layout)
        layout = load_layout(*arguments.layout, made.model, ranks);
    load_routing(arguments, layout, usual, given, made);
    check_tokens(made);
    if (!layout) made.placement = placement_of(made);
    return made;
}

}  // namespace moehub
