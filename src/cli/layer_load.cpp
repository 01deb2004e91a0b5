// From what was typed to what is simulated.
#include "cli/layer_arguments.hpp"
#include "cli/layer_layout.hpp"
#include "cli/layer_routing.hpp"
#include "cli/values.hpp"
#include "study/collective_names.hpp"

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

Model model_with_experts(const LayerArguments& arguments) {
    const std::string name = arguments.model.value_or(kUsualModel);
    Model model = model_of(arguments, name);
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

void check_copies(const LayerArguments& arguments) {
    if (arguments.replicas && arguments.layout)
        throw InputError(
            "--replicas: found with --layout, whose file says which experts have copies, allowed: "
            "one of the two");
    if (arguments.replica_policy && !arguments.replicas && !arguments.layout)
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

Machine machine_of(const LayerArguments& arguments, const std::string& name) {
    Overrides settings;
    for (const std::string& one : arguments.settings)
        if (!one.starts_with(kModelPrefix) && !one.starts_with(kSystemPrefix))
            settings.push_back(one);
    Machine machine = load_machine(name, settings);
    try {
        machine.gpu = with_kernels(machine.gpu, arguments.kernels);
    } catch (const InputError& error) {
        throw InputError(fmt::format("--kernels: {}: {}", machine.gpu_name, error.what()));
    }
    if (!arguments.gpus) return machine;
    const int most = machine.max_gpus > 0 ? machine.max_gpus : machine.gpus();
    return with_gpus(machine, int_of("--gpus", *arguments.gpus, {1, most}));
}

std::vector<std::string> settings_of(const LayerArguments& arguments) {
    std::vector<std::string> settings = arguments.settings;
    if (arguments.kernels != "torch") settings.push_back("kernels=" + arguments.kernels);
    return settings;
}

Model model_of(const LayerArguments& arguments, const std::string& name) {
    Overrides settings;
    for (const std::string& one : arguments.settings)
        if (one.starts_with(kModelPrefix)) settings.push_back(one.substr(kModelPrefix.size()));
    return load_model(name, settings);
}

bool is_dense(const LayerArguments& arguments) {
    return model_of(arguments, arguments.model.value_or(kUsualModel)).experts == 0;
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

LayerCase load_layer(const LayerArguments& arguments, LayoutLayer usual) {
    LayerCase made;
    made.machine_name = arguments.machine.value_or(kUsualMachine);
    made.model_name = arguments.model.value_or(kUsualModel);
    made.settings = settings_of(arguments);
    made.machine = machine_of(arguments, made.machine_name);
    made.model = model_with_experts(arguments);
    check_copies(arguments);
    made.options = options_of(arguments, made.machine.gpus());
    made.software = software_of(arguments);
    made.replicas = int_of("--replicas", arguments.replicas.value_or("0"), {0, kMostInt});
    std::optional<ExpertLayout> layout;
    if (arguments.layout)
        layout = load_layout(*arguments.layout, made.model,
                             made.machine.gpus() / made.options.tensor_parallel);
    load_routing(arguments, layout, usual, made);
    check_tokens(made);
    if (!layout) made.placement = placement_of(made);
    return made;
}

}  // namespace moehub
