// A model's time is the sum of its parts:
//
//     layers · (attention block) + MoE layers · (simulated layer) + dense layers · (dense FFN)
//         + head,
//
// each block from its start, when its host starts to issue, to its last kernel. Where a system
// overlaps passes, attention and MoE layers are one part, forward beside backward.
#include "base/input_error.hpp"
#include "base/quantity.hpp"
#include "layers/tp/tp_shape.hpp"
#include "study/compare.hpp"
#include "study/model_rest.hpp"
#include "study/overlapped_passes.hpp"
#include "systems/systems.hpp"

#include <moehub/compare.hpp>
#include <moehub/model_time.hpp>

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

void refuse_model(const Model& model, std::string_view found, std::string_view allowed) {
    throw input_error("model {}: found {}, allowed: a whole {}", quoted(model.name), found,
                      allowed);
}

void check_whole(const Model& model, std::string_view allowed) {
    if (model.attention.heads <= 0) refuse_model(model, "no attention heads", allowed);
    if (model.vocab <= 0) refuse_model(model, "no vocabulary", allowed);
}

void check_moe(const Model& model) {
    constexpr std::string_view kAllowed = "model with experts";
    if (model.moe_layers() <= 0) refuse_model(model, "no MoE layers", kAllowed);
    check_whole(model, kAllowed);
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
    norms.count += rest.windowed.count;  // windowed layers have the same norms
    if (norms.total() > 0) parts.push_back(std::move(norms));
    parts.push_back(std::move(moe));
    if (rest.dense.count > 0) parts.push_back(rest.dense.part("dense FFNs", Part::dense));
    parts.push_back(rest.head.part("LM head", Part::head));
    if (LayerTypeTime host = host_of(rest); host.total() > 0) parts.push_back(std::move(host));
    return parts;
}

/// The MoE layer under every system, one way. `simulations` counts those of the passes before, then
/// this pass's, too.
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

void check_dense(const Model& model) {
    constexpr std::string_view kAllowed = "dense model";
    if (model.experts > 0) refuse_model(model, "experts", kAllowed);
    if (model.layers <= 0) refuse_model(model, "no layers", kAllowed);
    check_whole(model, kAllowed);
}

/// Times of the gradients of a sub-layer's two matrices on one GPU's share of them, after its own
/// pass backward; `first` is the one whose rows the sub-layer adds up.
struct WeightGradients {
    Ps first = 0;
    Ps second = 0;
};

WeightGradients weight_gradients(const DenseInput& in, SubLayer backward) {
    const layers::TpShape shape = layers::tp_shape(in.model, backward);
    const auto gpus = static_cast<std::uint32_t>(in.machine.gpus());
    const auto share = [&](std::int64_t width) { return layers::share_of(width, gpus - 1, gpus); };
    const auto time = [&](const GemmShape& gemm) {
        return Ps{std::llround(kernel_seconds(in.machine.gpu, gemm) * 1e12)};
    };
    return {time({share(shape.before), in.tokens, shape.hidden, true}),
            time({shape.hidden, in.tokens, share(shape.after), true})};
}

/// One kind of sub-layer, both ways.
LayerTypeTime part_of(const DenseInput& in, const ModelOptions& options, const LayerResult& forward,
                      const SubLayerResult* backward) {
    LayerTypeTime part{"", in.model.layers, forward.time, 0, 0, forward.breakdown};
    if (backward == nullptr) return part;
    const WeightGradients gradients = weight_gradients(in, backward->part);
    Breakdown spent = backward->result.breakdown;
    if (options.overlap_gradients)
        spent.communication -= std::min(spent.communication, gradients.first);
    spent.compute += gradients.first + gradients.second;
    part.backward = spent.compute + spent.communication + spent.host;
    add(part.simulated, spent);
    return part;
}

std::vector<LayerTypeTime> parts_of(const DenseInput& in, const ModelOptions& options,
                                    const Rest& rest, const std::vector<SubLayerResult>& made) {
    const auto backward = [&](std::size_t i) { return options.training ? &made[i] : nullptr; };
    std::vector<LayerTypeTime> parts;
    parts.push_back(part_of(in, options, made[0].result, backward(2)));
    parts.back().name = "sub-layers L1";
    parts.push_back(part_of(in, options, made[1].result, backward(3)));
    parts.back().name = "sub-layers L2";
    add_attention(parts, in.model, rest);
    parts.push_back(rest.dense.part("activation", Part::dense));
    parts.push_back(rest.head.part("LM head", Part::head));
    if (LayerTypeTime host = host_of(rest); host.total() > 0) parts.push_back(std::move(host));
    return parts;
}

std::vector<SubLayer> kinds_of(const ModelOptions& options) {
    if (!options.training) return {SubLayer::l1, SubLayer::l2};
    return {SubLayer::l1, SubLayer::l2, SubLayer::l3, SubLayer::l4};
}

TpOptions layer_of(const ModelOptions& options) {
    return {options.layer.grain, options.layer.verify, true, options.layer.timeline};
}

std::vector<Comparison> simulate_parts(const DenseInput& in, const std::vector<SubLayer>& parts,
                                       const std::vector<SystemSpec>& systems,
                                       const ModelOptions& options) {
    TpCompareOptions how;
    how.layer = layer_of(options);
    how.threads = options.threads;
    how.progress = options.progress;
    return compare_tp_parts({in.machine, in.model, in.tokens, parts.front()}, parts, systems, how);
}

}  // namespace

std::vector<ModelTime> simulate_models(const LayerInput& input,
                                       const std::vector<SystemSpec>& systems,
                                       const ModelOptions& options) {
    const Model& model = input.model;
    check_moe(model);
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

// A dense model's time under tensor parallelism is the sum of its parts:
//
//     layers · (L1 + L2 + attention on heads / N + activation on FFN / N) + head on vocabulary / N,
//
// in training also layers · (L3 + L4 + the weights' gradients) and the rest's way back. Sub-layers
// are simulated. The first layer's L2 has no FFN before it and the last one's no attention behind
// it: the two halves are one L2, so that there are as many as layers.

void check_dense_models(const DenseInput& in, const std::vector<SystemSpec>& systems,
                        const ModelOptions& options) {
    check_baseline(options.baseline, systems);
    check_dense(in.model);
    if (in.machine.nodes > 1)
        throw input_error(
            "a dense model is under tensor parallelism: found {} nodes, allowed: one node",
            in.machine.nodes);
    slice_of(in.model, in.machine.gpus());
    for (const SystemSpec& system : systems)
        for (const SubLayer kind : kinds_of(options))
            check_tp({in.machine, in.model, in.tokens, kind}, system, layer_of(options));
}

std::vector<ModelTime> simulate_dense_models(const DenseInput& in,
                                             const std::vector<SystemSpec>& systems,
                                             const ModelOptions& options) {
    check_dense_models(in, systems, options);
    const Model slice = slice_of(in.model, in.machine.gpus());
    const std::vector<SubLayer> kinds = kinds_of(options);
    const std::vector<Comparison> simulated = simulate_parts(in, kinds, systems, options);

    const Sequences sequences = sequences_of(in.model, in.tokens, 1, options.sequence);
    const Rest rest = rest_of_slice(slice, in.machine.gpu, sequences, options);
    std::vector<ModelTime> times;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        ModelTime time;
        time.system = systems[i].name;
        time.spec = systems[i];
        for (std::size_t kind = 0; kind < kinds.size(); ++kind)
            time.sub_layers.push_back({kinds[kind], simulated[kind].rows[i].result});
        time.parts = parts_of(in, options, rest, time.sub_layers);
        time.flops = (options.training ? 3 : 1) * static_cast<double>(in.tokens) *
                     flops_per_token(in.model, sequences);
        sum_up(time, in.machine, in.tokens);
        times.push_back(std::move(time));
    }
    return times;
}

}  // namespace moehub
