#include "study/overlapped_layer.hpp"

#include "sim/gpu/tile.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// The card with all its SMs, and with those that communication leaves.
struct Cards {
    Gpu all;
    Gpu left;
};

/// What kernels take of a layer when the SMs that communication holds are gone already, or not.
Ps experts_on(const Gpu& gpu, LayerInput input, SystemSpec system, const LayerOptions& options) {
    input.machine.gpu = gpu;
    system.communication_sms = 1;
    return simulate_layer(input, system, options).breakdown.compute;
}

PassSteps simulate_pass(const LayerInput& input, const SystemSpec& system, const Cards& cards,
                        LayerOptions options) {
    PassSteps steps;
    options.verify = false;
    steps.experts = {experts_on(cards.all, input, system, options),
                     experts_on(cards.left, input, system, options)};
    options.compute = false;
    const LayerResult rows = simulate_layer(input, system, options);
    steps.dispatch = rows.first_gemm;
    steps.combine = rows.combine;
    return steps;
}

/// Takes a part of a step's time away: that part.
KernelTime split_off(KernelTime& from, const KernelTime& part) {
    from.alone -= part.alone;
    from.beside -= part.beside;
    return part;
}

OverlappedSteps simulate_both(const LayerInput& input, const SystemSpec& system, const Cards& cards,
                              LayerOptions options) {
    OverlappedSteps steps;
    options.pass = Pass::forward;
    steps.forward = simulate_pass(input, system, cards, options);
    options.pass = Pass::backward;
    steps.backward = simulate_pass(input, system, cards, options);
    // Weights' gradients are as many operations as inputs', and as the way forward.
    KernelTime& both = steps.backward.experts;
    steps.backward.expert_weights = split_off(both, {both.alone / 2, both.beside / 2});
    return steps;
}

/// Attention of a MoE layer; of layers with and without a window the mean.
struct AttentionTime {
    Ps forward = 0;
    Ps backward = 0;
    Ps weights = 0;  ///< of backward
    Ps host = 0;     ///< of both
};

AttentionTime attention_of(const Model& model, const Rest& all) {
    const Rest apart = apart_from_moe(model, all);
    const auto mean = [&](const auto& of) {
        return (of(all.attention) * (all.attention.count - apart.attention.count) +
                of(all.windowed) * (all.windowed.count - apart.windowed.count)) /
               model.moe_layers();
    };
    return {mean([](const RestBlock& one) { return one.forward.total(); }),
            mean([](const RestBlock& one) { return one.backward.total(); }),
            mean([](const RestBlock& one) { return one.weight_gradients; }),
            mean([](const RestBlock& one) { return one.forward.host + one.backward.host; })};
}

void add_attention(OverlappedSteps& steps, const AttentionTime& all, const AttentionTime& left) {
    steps.forward.attention = {all.forward, left.forward};
    steps.backward.attention = {all.backward, left.backward};
    steps.backward.attention_weights =
        split_off(steps.backward.attention, {all.weights, left.weights});
}

}  // namespace

SystemSpec without_overlap(SystemSpec system) {
    system.overlap_passes = false;
    return system;
}

Rest apart_from_moe(const Model& model, Rest rest) {
    rest.attention.count = std::min(rest.attention.count, model.dense_layers);
    rest.windowed.count = model.dense_layers - rest.attention.count;
    return rest;
}

OverlappedTime overlapped_time(const LayerInput& input, const SystemSpec& system,
                               const Sequences& sequences, const ModelOptions& options) {
    const Model& model = input.model;
    const Gpu& gpu = input.machine.gpu;
    const Cards cards{gpu, with_sms(gpu, gpu.sms - system.communication_sms)};
    OverlappedSteps steps = simulate_both(input, without_overlap(system), cards, options.layer);
    const AttentionTime attention =
        attention_of(model, rest_of(model, cards.all, sequences, options));
    add_attention(steps, attention,
                  attention_of(model, rest_of(model, cards.left, sequences, options)));
    const OverlappedPair pair = overlap(steps);
    OverlappedTime time;
    time.period = pair.period;
    time.busy = pair.busy - attention.host;
    time.host = attention.host;
    time.compute = steps.compute() - attention.host;
    time.communication = steps.communication();
    return time;
}

}  // namespace moehub
