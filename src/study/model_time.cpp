// A model's time is the sum of its parts:
//
//     layers · (attention block) + MoE layers · (simulated layer) + dense layers · (dense FFN)
//         + head,
//
// each block from its start, when its host starts to issue, to its last kernel. Where a system
// overlaps passes, attention and MoE layers are one part, forward beside backward. Dense models:
// model_dense.cpp.
#include "base/quantity.hpp"
#include "study/model_attention.hpp"
#include "study/model_sum.hpp"
#include "study/overlapped_layer.hpp"
#include "study/system_names.hpp"
#include "systems/systems.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/model_time.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

void check_whole(const Model& model) {
    const auto refuse = [&](std::string_view what) {
        throw InputError(fmt::format("model {}: found no {}, allowed: a whole model with experts",
                                     quoted(model.name), what));
    };
    if (model.moe_layers() <= 0) refuse("MoE layers");
    if (model.attention.heads <= 0) refuse("attention heads");
    if (model.vocab <= 0) refuse("vocabulary");
}

std::vector<LayerTypeTime> parts_of(const Model& model, const Rest& rest,
                                    const std::vector<SubLayerResult>& halves, LayerTypeTime moe) {
    const auto half = [&](std::size_t i) {
        const LayerResult& result = halves[i].result;
        return LayerTypeTime{std::string(name_of(halves[i].part)),
                             model.layers,
                             result.time,
                             0,
                             0,
                             result.breakdown};
    };
    std::vector<LayerTypeTime> parts;
    if (!halves.empty()) parts.push_back(half(0));
    add_attention(parts, model, rest);
    if (!halves.empty()) parts.push_back(half(1));
    LayerTypeTime norms = rest.attention.part("norms and residuals", Part::norms);
    norms.count += rest.windowed.count;  // the same kernels, windowed or not
    if (norms.total() > 0) parts.push_back(std::move(norms));
    parts.push_back(std::move(moe));
    if (rest.dense.count > 0) parts.push_back(rest.dense.part("dense FFNs", Part::dense));
    parts.push_back(rest.head.part("LM head", Part::head));
    if (LayerTypeTime host = host_of(rest); host.total() > 0) parts.push_back(std::move(host));
    return parts;
}

/// The MoE layer under every system, one way. `simulations`: of the pass before, then with this
/// one's.
Comparison simulate_pass(const LayerInput& input, const std::vector<SystemSpec>& systems,
                         const ModelOptions& options, Pass pass, std::size_t& simulations) {
    const std::size_t before = simulations;
    const std::size_t after = options.training && pass == Pass::forward ? systems.size() : 0;
    CompareOptions one_way;
    one_way.layer = options.layer;
    one_way.layer.pass = pass;
    one_way.threads = options.threads;
    one_way.progress = [&](std::size_t done, std::size_t known) {
        simulations = before + known;
        if (options.progress) options.progress(before + done, simulations + after);
    };
    return compare_systems(input, systems, one_way);
}

/// Systems as their layers are simulated. In training, those that overlap passes have a layer, too:
/// one pass after the other.
std::vector<SystemSpec> as_layers(std::vector<SystemSpec> systems, const ModelOptions& options) {
    if (!options.training) return systems;
    for (SystemSpec& system : systems) {
        if (system.overlap_passes) systems::check_parameters(system);
        system = without_overlap(std::move(system));
    }
    return systems;
}

}  // namespace

std::vector<ModelTime> simulate_models(const LayerInput& input,
                                       const std::vector<SystemSpec>& systems,
                                       const ModelOptions& options) {
    const Model& model = input.model;
    check_whole(model);
    check_baseline(options.baseline, systems);
    const std::vector<SystemSpec> layers = as_layers(systems, options);
    std::optional<SharedAttention> shared;
    if (options.attention_gpus > 0) {
        for (const SystemSpec& system : layers) check_layer(input, system, options.layer);
        shared = shared_attention(input, options);
    }
    std::size_t simulations = 0;
    const Comparison forward = simulate_pass(input, layers, options, Pass::forward, simulations);
    std::optional<Comparison> backward;
    if (options.training)
        backward = simulate_pass(input, layers, options, Pass::backward, simulations);

    Sequences sequences =
        sequences_of(model, input.routing.tokens, input.machine.gpus(), options.sequence);
    Rest rest = rest_of(model, input.machine.gpu, sequences, options);
    if (shared) {
        sequences = shared->sequences;
        share_attention(rest, shared->slice, input.machine.gpu, sequences, options);
    }
    std::vector<ModelTime> times;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        ModelTime time;
        time.system = systems[i].name;
        time.spec = systems[i];
        time.moe = forward.rows[i].result;
        if (shared) time.sub_layers = shared->halves;
        LayerTypeTime moe{"MoE layers",       model.moe_layers(), time.moe->time, 0, 0,
                          time.moe->breakdown};
        if (backward) {
            time.moe_backward = backward->rows[i].result;
            moe.backward = time.moe_backward->time;
            add(moe.simulated, time.moe_backward->breakdown);
        }
        if (systems[i].overlap_passes) {
            time.overlapped = overlapped_time(input, systems[i], sequences, options);
            moe = {"attention, MoE layers", model.moe_layers(), 0, 0, time.overlapped->period};
        }
        time.parts = parts_of(model, time.overlapped ? apart_from_moe(model, rest) : rest,
                              time.sub_layers, std::move(moe));
        time.flops = (options.training ? 3 : 1) * static_cast<double>(input.routing.tokens) *
                     flops_per_token(model, sequences);
        sum_up(time, input.machine, input.routing.tokens);
        times.push_back(std::move(time));
    }
    return times;
}

const ModelTime& baseline_of(const std::vector<ModelTime>& times, std::string_view named) {
    const auto usual = std::find_if(times.begin(), times.end(), [&](const auto& one) {
        if (!named.empty()) return one.system == named;
        return one.system == "megatron-te" || one.system == "tp-nvls";
    });
    if (usual != times.end()) return *usual;
    return *std::max_element(times.begin(), times.end(),
                             [](const auto& a, const auto& b) { return a.total < b.total; });
}

}  // namespace moehub
