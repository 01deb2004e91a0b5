#include "study/usual_systems.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <optional>
#include <string_view>

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

/// What refuses to run says why; nothing when it runs.
template <class Check>
std::optional<std::string> refusal(const std::string& name, Check check) {
    try {
        check();
        return std::nullopt;
    } catch (const InputError& error) {
        std::string_view why = error.what();
        const std::string front = name + " cannot run this: ";
        if (why.starts_with(front)) why.remove_prefix(front.size());
        return std::string(why);
    }
}

std::optional<std::string> why_not(const LayerCase& layer, const SystemSpec& published) {
    if (is_one_of(kAblations, published.name)) return "an ablation; it runs when it is named";
    if (is_one_of(kSuperseded, published.name))
        return "an earlier version; it runs when it is named";
    if (published.overlap_passes) return "whole models: moehub model --training";
    if (published.once_per_node && layer.machine.nodes == 1) return "in one node as without -relay";
    if (published.narrow_experts() && !layer.software.fp8.value_or(false))
        return "computes in FP8: --fp8";
    return refusal(published.name, [&] {
        check_layer(layer.input(), with_software(published, layer.software), layer.options);
    });
}

std::optional<std::string> why_not(const TpCase& layer, const SystemSpec& published) {
    if (is_one_of(kAblations, published.name)) return "an ablation; it runs when it is named";
    return refusal(published.name, [&] {
        for (const SubLayer part : layer.parts)
            check_tp({layer.machine, layer.model, layer.tokens, part}, published, layer.options);
    });
}

template <class Case>
UsualSystems usual_of(const Case& layer, const std::vector<SystemInfo>& all) {
    UsualSystems usual;
    for (const SystemInfo& system : all) {
        if (std::optional<std::string> reason = why_not(layer, load_system(system.name)))
            usual.left_out.push_back({system.name, std::move(*reason)});
        else
            usual.names.push_back(system.name);
    }
    return usual;
}

}  // namespace

UsualSystems usual_systems(const LayerCase& layer) {
    return usual_of(layer, all_systems());
}

UsualSystems usual_systems(const TpCase& layer) {
    UsualSystems usual = usual_of(layer, all_tp_systems());
    if (usual.names.empty()) usual.names.push_back(all_tp_systems().front().name);
    return usual;
}

}  // namespace moehub
