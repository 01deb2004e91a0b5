#include "answers/layer_request.hpp"
#include "systems/needs.hpp"

#include <moehub/compare.hpp>

#include <algorithm>
#include <functional>

namespace moehub {
namespace {

constexpr std::string_view kAblations[] = {
    "mh-base",     "mh-pkt",     "mh-dep",    "dysharp-basic", "dysharp-comet",
    "fusion-only", "steps-only", "cais-base", "cais-partial",  "cais-uncoordinated"};
constexpr std::string_view kSuperseded[] = {"deepep-single-qp", "deepep-ll-rdma"};

template <class Names>
bool is_one_of(const Names& names, const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Why a system cannot run a layer, as the check says; nothing when it can.
std::optional<std::string> refusal(const std::function<void()>& check) {
    try {
        check();
        return std::nullopt;
    } catch (const CannotRun& error) {
        return error.why();
    } catch (const InputError& error) {
        return error.what();
    }
}

/// Why a system is not among the usual ones of a layer.
std::optional<std::string> unusual(const LayerCase& layer, const SystemSpec& published) {
    if (is_one_of(kAblations, published.name)) return "an ablation; it runs when it is named";
    if (is_one_of(kSuperseded, published.name))
        return "an earlier version; it runs when it is named";
    if (published.overlap_passes) return "whole models: moehub model --training";
    if (published.once_per_node && layer.input.machine.nodes == 1)
        return "in one node as without -relay";
    if (published.narrow_experts() && !layer.software.fp8.value_or(false))
        return "computes in FP8: --fp8";
    return std::nullopt;
}

std::optional<std::string> unusual(const TpCase&, const SystemSpec& published) {
    if (is_one_of(kAblations, published.name)) return "an ablation; it runs when it is named";
    return std::nullopt;
}

void check(const LayerCase& layer, const SystemSpec& system) {
    systems::check_loaded(layer.input, system, layer.options);
}

void check(const TpCase& layer, const SystemSpec& system) {
    for (const SubLayer part : layer.parts) check_tp(layer.input(part), system, layer.options);
}

/// Of all systems those that are usual.
template <class Case>
std::vector<std::string> usual_names(const Case& layer, const std::vector<SystemInfo>& all,
                                     std::vector<LeftOut>& left_out) {
    std::vector<std::string> names;
    for (const SystemInfo& system : all) {
        if (auto reason = unusual(layer, load_system(system.name)))
            left_out.push_back({system.name, std::move(*reason)});
        else
            names.push_back(system.name);
    }
    return names;
}

template <class Case>
ChosenSystems choose(const Case& layer,
                     const std::optional<std::vector<Wanted<SystemSpec>>>& wanted,
                     const Settings& settings, const Software& software,
                     std::vector<SystemInfo> (*all)()) {
    ChosenSystems chosen;
    const auto candidates =
        wanted ? *wanted : wanted_systems(usual_names(layer, all(), chosen.left_out));
    std::vector<LeftOut> refused;
    for (SystemSpec& system : load_systems(candidates, settings, software)) {
        if (auto reason = refusal([&] { check(layer, system); }))
            refused.push_back({system.name, std::move(*reason)});
        else
            chosen.systems.push_back(std::move(system));
    }
    if (chosen.systems.empty() && !refused.empty())
        throw CannotRun(refused.front().system, refused.front().reason);
    chosen.left_out.insert(chosen.left_out.begin(), refused.begin(), refused.end());
    return chosen;
}

}  // namespace

ChosenSystems choose_systems(const LayerCase& layer,
                             const std::optional<std::vector<Wanted<SystemSpec>>>& wanted,
                             const Settings& settings) {
    if (wanted) check_wanted(*wanted, check_systems);
    return choose(layer, wanted, settings, layer.software, all_systems);
}

ChosenSystems choose_systems(const TpCase& layer,
                             const std::optional<std::vector<Wanted<SystemSpec>>>& wanted,
                             const Settings& settings) {
    if (wanted) check_wanted(*wanted, check_tp_systems);
    return choose(layer, wanted, settings, {}, all_tp_systems);
}

}  // namespace moehub
