// From what was asked to what is simulated.
#include "answers/layer_request.hpp"
#include "study/compare.hpp"
#include "systems/needs.hpp"

#include <moehub/predict.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr const char* kUsualMachine = "dgx-h800";
constexpr const char* kUsualModel = "mixtral-8x7b";
constexpr const char* kUsualTpMachine = "dgx-h100";
constexpr const char* kUsualTpModel = "llama-7b";

int limited(std::string_view option, int value, Range allowed) {
    return static_cast<int>(count_of(option, std::to_string(value), allowed));
}

Model model_with_experts(const LayerRequest& request) {
    Model model = model_of(request.model, request.settings, kUsualModel);
    if (model.experts > 0) return model;
    bad_input("--model: found {}, which has no experts, allowed: a model with experts",
              moehub::quoted(request.model.name_or(kUsualModel)));
}

void check_tokens(std::int64_t tokens, int gpus) {
    if (tokens >= gpus) return;
    bad_input("--tokens: found {}, allowed: at least one for each of the {} GPUs", tokens, gpus);
}

void check_copies(const LayerRequest& request) {
    if (request.replicas && request.layout.said())
        throw InputError(
            "--replicas: found with --layout, whose file says which experts have copies, allowed: "
            "one of the two");
    if (request.replica_policy && !request.replicas && !request.layout.said())
        throw InputError(
            "--replica-policy: found without --replicas or --layout, allowed: with "
            "one of them");
}

Placement placement_of(const LayerCase& made) {
    const auto& [machine, model, routing, unused] = made.input;
    const Placement placement =
        contiguous_placement(model.experts, machine.gpus() / made.options.tensor_parallel);
    if (made.replicas == 0) return placement;
    std::vector<long long> rows(static_cast<std::size_t>(model.experts));
    for (const std::uint16_t expert : routing.chosen) ++rows[expert];
    return with_replicas(placement, rows, made.replicas);
}

LayerOptions options_of(const LayerRequest& request, int gpus) {
    LayerOptions options = request.options;
    options.tensor_parallel = limited("--tp", request.tensor_parallel, {1, gpus});
    if (gpus % options.tensor_parallel != 0)
        bad_input("--tp: found {}, allowed: divisors of the {} GPUs", options.tensor_parallel,
                  gpus);
    options.replicas = request.replica_policy.value_or(ReplicaPolicy::round_robin);
    return options;
}

/// "NAME.KEY=VALUE" of one of the systems: the part behind the name; empty for another's.
std::string setting_for(const std::string& name, const std::string& setting) {
    return setting.starts_with(name + ".") ? setting.substr(name.size() + 1) : "";
}

/// GPUs without an expert compute nothing, which a reader should know.
std::string idle_words(const Placement& placement) {
    std::vector<bool> holds(static_cast<std::size_t>(placement.ranks));
    for (const auto& hosts : placement.hosts)
        for (const int rank : hosts) holds[static_cast<std::size_t>(rank)] = true;
    const auto idle = std::count(holds.begin(), holds.end(), false);
    if (idle == 0) return "";
    return fmt::format("{} of {} expert-parallel ranks hold no expert: there are {}.", idle,
                       placement.ranks, placement.hosts.size());
}

constexpr std::string_view kAblations[] = {
    "mh-base",     "mh-pkt",     "mh-dep",    "dysharp-basic", "dysharp-comet",
    "fusion-only", "steps-only", "cais-base", "cais-partial",  "cais-uncoordinated"};
constexpr std::string_view kSuperseded[] = {"deepep-single-qp", "deepep-ll-rdma"};

template <class Names>
bool is_one_of(const Names& names, const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Why a system is not among the usual ones of a layer.
std::optional<std::string> unusual(const LayerCase& layer, const SystemSpec& published) {
    if (is_one_of(kAblations, published.name)) return "an ablation; it runs when it is named";
    if (!layer.is_moe()) return std::nullopt;
    if (is_one_of(kSuperseded, published.name))
        return "an earlier version; it runs when it is named";
    if (published.overlap_passes) return "whole models: moehub model --training";
    if (published.once_per_node && layer.input.machine.nodes == 1)
        return "in one node as without -relay";
    if (published.narrow_experts() && !layer.software.fp8.value_or(false))
        return "computes in FP8: --fp8";
    return std::nullopt;
}

void check(const LayerCase& layer, const SystemSpec& system) {
    if (layer.is_moe()) systems::check_loaded(layer.input, system, layer.options);
    for (const SubLayer part : layer.parts)
        check_tp(layer.input_of(part), system, layer.options_of_parts());
}

/// The usual systems of a layer; `left_out` gets the others.
std::vector<Wanted<SystemSpec>> usual_systems(const LayerCase& layer,
                                              std::vector<LeftOut>& left_out) {
    std::vector<Wanted<SystemSpec>> usual;
    for (const SystemInfo& system : layer.is_moe() ? all_systems() : all_tp_systems()) {
        if (auto reason = unusual(layer, load_system(system.name)))
            left_out.push_back({system.name, std::move(*reason)});
        else
            usual.push_back({system.name});
    }
    return usual;
}

}  // namespace

Machine sized_machine(const LayerRequest& request, const char* usual) {
    Machine machine = machine_of(request.machine, request.settings, usual);
    try {
        machine.gpu = with_kernels(machine.gpu, request.kernels);
    } catch (const InputError& error) {
        bad_input("--kernels: {}: {}", machine.gpu_name, error.what());
    }
    if (!request.gpus) return machine;
    const int most = machine.max_gpus > 0 ? machine.max_gpus : machine.gpus();
    return with_gpus(machine, limited("--gpus", *request.gpus, {1, most}));
}

std::optional<std::int64_t> asked_tokens(const LayerRequest& request, int gpus) {
    if (request.tokens) return request.tokens;
    if (!request.tokens_per_gpu) return std::nullopt;
    return gpus * count_of("--tokens-per-gpu", std::to_string(*request.tokens_per_gpu),
                           {1, kMostTokens / gpus});
}

std::vector<std::string> settings_of(const LayerRequest& request) {
    std::vector<std::string> settings =
        settings_of(request.settings, request.machine, request.model);
    if (request.kernels != "torch") settings.push_back("kernels=" + request.kernels);
    return settings;
}

bool is_dense(const LayerRequest& request, const char* usual_model) {
    return model_of(request.model, request.settings, usual_model).experts == 0;
}

std::vector<Wanted<SystemSpec>> wanted_systems(const std::vector<std::string>& names) {
    std::vector<Wanted<SystemSpec>> wanted;
    for (const std::string& name : names) wanted.push_back({name});
    return wanted;
}

void check_wanted(const std::vector<Wanted<SystemSpec>>& systems,
                  void (*check)(const std::vector<std::string>&)) {
    std::vector<std::string> names;
    for (const auto& one : systems)
        if (one.given == nullptr) names.push_back(one.name);
    if (!names.empty() || systems.empty()) check(names);
}

std::vector<SystemSpec> load_systems(const std::vector<Wanted<SystemSpec>>& wanted,
                                     const Settings& settings, const Software& software) {
    std::vector<Overrides> own(wanted.size());
    for (const std::string& one : settings.of("system")) {
        bool taken = false;
        std::vector<std::string> names;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            if (wanted[i].given != nullptr) continue;
            names.push_back(load_system(wanted[i].name).name);
            const std::string setting = setting_for(names.back(), one);
            if (setting.empty()) continue;
            own[i].push_back(setting);
            taken = true;
        }
        if (!taken)
            bad_input(
                "--set: found {}, allowed: system.NAME.KEY=VALUE with one "
                "of the systems simulated: {}",
                moehub::quoted("system." + one), fmt::join(names, ", "));
    }
    std::vector<SystemSpec> systems;
    for (std::size_t i = 0; i < wanted.size(); ++i)
        systems.push_back(with_software(wanted[i].given != nullptr
                                            ? wanted[i].given->value
                                            : load_system(wanted[i].name, own[i]),
                                        software));
    check_unlike(systems);
    return systems;
}

LayerCase load_layer(const LayerRequest& request, LayoutLayer usual) {
    LayerCase made;
    made.machine_name = request.machine.name_or(kUsualMachine);
    made.model_name = request.model.name_or(kUsualModel);
    made.settings = settings_of(request);
    made.input.machine = sized_machine(request, kUsualMachine);
    made.input.model = model_with_experts(request);
    check_copies(request);
    const int gpus = made.input.machine.gpus();
    made.options = options_of(request, gpus);
    made.software = request.software;
    made.replicas = request.replicas.value_or(0);
    std::optional<ExpertLayout> layout;
    if (request.layout.said())
        layout = load_layout(request.layout, made.input.model, gpus / made.options.tensor_parallel);
    load_routing(request, layout, usual, made);
    made.tokens = made.input.routing.tokens;
    check_tokens(made.tokens, gpus);
    if (!layout) made.input.placement = placement_of(made);
    made.idle = idle_words(made.input.placement);
    return made;
}

LayerCase load_tp(const LayerRequest& request) {
    LayerCase made;
    made.parts = request.sub_layers.value_or(std::vector{SubLayer::l1});
    made.machine_name = request.machine.name_or(kUsualTpMachine);
    made.model_name = request.model.name_or(kUsualTpModel);
    made.settings = settings_of(request);
    made.input.machine = sized_machine(request, kUsualTpMachine);
    made.input.model = model_of(request.model, request.settings, kUsualTpModel);
    const Model& model = made.input.model;
    const std::int64_t usual = std::int64_t{model.sequence} * model.batch;
    made.tokens = asked_tokens(request, made.input.machine.gpus())
                      .value_or(model.sequence < 1 ? kUsualTokens : std::min(kMostTokens, usual));
    made.options.grain = request.options.grain;
    made.options.verify = request.options.verify;
    made.options.timeline = request.options.timeline;
    return made;
}

std::string inputs_of(const Routing& routing) {
    return {reinterpret_cast<const char*>(routing.chosen.data()),
            routing.chosen.size() * sizeof(std::uint16_t)};
}

std::string inputs_of(const Placement& placement) {
    std::string bytes;
    for (const auto& hosts : placement.hosts) bytes += fmt::format("{};", fmt::join(hosts, ","));
    return bytes;
}

std::string inputs_of(const LayerCase& layer) {
    const auto& [machine, model, routing, placement] = layer.input;
    return to_toml(machine) + to_toml(model) +
           (layer.is_moe() ? inputs_of(routing) + inputs_of(placement)
                           : std::to_string(layer.tokens));
}

std::string inputs_of(const std::vector<SystemSpec>& systems) {
    std::string bytes;
    for (const SystemSpec& system : systems) bytes += to_toml(system);
    return bytes;
}

ChosenSystems choose_systems(const LayerCase& layer,
                             const std::optional<std::vector<Wanted<SystemSpec>>>& wanted,
                             const Settings& settings) {
    if (wanted) check_wanted(*wanted, layer.is_moe() ? check_systems : check_tp_systems);
    ChosenSystems chosen;
    const auto candidates = wanted ? *wanted : usual_systems(layer, chosen.left_out);
    std::vector<LeftOut> refused;
    for (SystemSpec& system : load_systems(candidates, settings, layer.software)) {
        try {
            check(layer, system);
            chosen.systems.push_back(std::move(system));
        } catch (const CannotRun& error) {
            refused.push_back({system.name, error.why()});
        } catch (const InputError& error) {
            refused.push_back({system.name, error.what()});
        }
    }
    if (chosen.systems.empty() && !refused.empty())
        throw CannotRun(refused.front().system, refused.front().reason);
    chosen.left_out.insert(chosen.left_out.begin(), refused.begin(), refused.end());
    return chosen;
}

}  // namespace moehub
