#include "request/sweep_case.hpp"

#include <moehub/compare.hpp>
#include <moehub/presets.hpp>
#include <moehub/tp_compare.hpp>

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

TpInput input_of(const TpCase& layer, SubLayer part) {
    return {layer.machine, layer.model, layer.tokens, part};
}

template <class Value>
void append(std::string& bytes, const SharedArray<Value>& values) {
    const std::size_t before = bytes.size();
    bytes.resize(before + values.size() * sizeof(Value));
    if (!values.empty()) std::memcpy(&bytes[before], values.data(), values.size() * sizeof(Value));
}

SweepOutcome simulate_tp_parts(const TpCase& layer, const SystemSpec& system) {
    TpCompareOptions options;
    options.layer = layer.options;
    options.threads = 1;  // points are what runs side by side
    const std::vector<Comparison> parts =
        compare_tp_parts(layer.input(), layer.parts, {system}, options);
    return outcome_of(sum_of(parts).rows.front().result);
}

}  // namespace

void check_case_systems(StudyKind kind, const std::vector<std::string>& systems) {
    if (kind == StudyKind::layer) return check_systems(systems);
    // A dense model's are those of tensor-parallel sub-layers; which it is, each point says.
    try {
        check_systems(systems);
    } catch (const InputError&) {
        check_tp_systems(systems);
    }
}

SweepCase load_case(StudyKind kind, const ModelArguments& arguments) {
    SweepCase loaded;
    loaded.kind = kind;
    if (kind == StudyKind::tp) {
        wants_tp(arguments.layer);
        loaded.tp = load_tp(arguments.layer, true);
        return loaded;
    }
    if (kind == StudyKind::layer) {
        loaded.layer = load_layer(arguments.layer);
        return loaded;
    }
    loaded.options = options_of(arguments);
    loaded.options.overlap_gradients = arguments.overlap_gradients;
    loaded.options.threads = 1;  // points are what runs side by side
    if (is_dense(arguments.layer)) {
        loaded.tp = load_dense(arguments.layer);
        loaded.options.layer.grain = loaded.tp->options.grain;
    } else {
        loaded.layer = load_layer(arguments.layer, LayoutLayer::mean);
        loaded.options.layer = loaded.layer->options;
    }
    return loaded;
}

std::string fingerprint_of(const SweepCase& loaded) {
    if (loaded.tp)
        return to_toml(loaded.tp->machine) + to_toml(loaded.tp->model) +
               std::to_string(loaded.tp->tokens);
    const LayerCase& layer = *loaded.layer;
    std::string bytes = to_toml(layer.machine) + to_toml(layer.model);
    append(bytes, layer.routing.chosen);
    for (const auto& hosts : layer.placement.hosts)
        bytes += fmt::format("{};", fmt::join(hosts, ","));
    return bytes;
}

std::string why_not(const SweepCase& loaded, const SystemSpec& system) {
    try {
        if (loaded.tp) {
            for (const SubLayer part : loaded.tp->parts)
                check_tp(input_of(*loaded.tp, part), system, loaded.tp->options);
        } else if (!(loaded.options.training && system.overlap_passes)) {
            check_layer(loaded.layer->input(), system, loaded.layer->options);
        }
        return "";
    } catch (const InputError& error) {
        return error.what();
    }
}

SweepOutcome simulate_case(const SweepCase& loaded, const SystemSpec& system) {
    if (loaded.kind == StudyKind::tp) return simulate_tp_parts(*loaded.tp, system);
    if (loaded.kind == StudyKind::layer)
        return outcome_of(simulate_layer(loaded.layer->input(), system, loaded.layer->options));
    if (loaded.layer)
        return outcome_of(simulate_models(loaded.layer->input(), {system}, loaded.options).front());
    const TpCase& tp = *loaded.tp;
    return outcome_of(
        simulate_dense_models({tp.machine, tp.model, tp.tokens}, {system}, loaded.options).front());
}

}  // namespace moehub
