// A model's time is the sum of its parts:
//
//     layers · (attention block) + MoE layers · (simulated layer) + dense layers · (dense FFN)
//         + head,
//
// each block from its start, when its host starts to issue, to its last kernel. Where a system
// overlaps passes, attention and MoE layers are one part, forward beside backward.
#include "base/quantity.hpp"
#include "study/model_rest.hpp"
#include "study/overlapped_layer.hpp"
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

std::vector<LayerTypeTime> parts_of(const Model& model, const Rest& rest, LayerTypeTime moe) {
    std::vector<LayerTypeTime> parts;
    if (rest.attention.count > 0)
        parts.push_back(rest.attention.part("attention", Part::attention));
    if (rest.windowed.count > 0)
        parts.push_back(rest.windowed.part(
            fmt::format("attention, window {}", model.attention.window), Part::attention));
    LayerTypeTime norms = rest.attention.part("norms and residuals", Part::norms);
    norms.count += rest.windowed.count;  // the same kernels, windowed or not
    if (norms.count > 0) parts.push_back(std::move(norms));
    parts.push_back(std::move(moe));
    if (rest.dense.count > 0) parts.push_back(rest.dense.part("dense FFNs", Part::dense));
    parts.push_back(rest.head.part("LM head", Part::head));
    if (LayerTypeTime host = host_of(rest); host.total() > 0) parts.push_back(std::move(host));
    return parts;
}

/// The MoE layer under every system, one way.
Comparison simulate_pass(const LayerInput& input, const std::vector<SystemSpec>& systems,
                         const ModelOptions& options, Pass pass) {
    const std::size_t before = pass == Pass::forward ? 0 : systems.size();
    const std::size_t total = (options.training ? 2 : 1) * systems.size();
    CompareOptions one_way;
    one_way.layer = options.layer;
    one_way.layer.pass = pass;
    one_way.threads = options.threads;
    if (options.progress)
        one_way.progress = [&](std::size_t done, std::size_t) {
            options.progress(before + done, total);
        };
    return compare_systems(input, systems, one_way);
}

/// What follows from the parts.
void sum_up(ModelTime& time, const LayerInput& input) {
    for (const LayerTypeTime& part : time.parts) time.total += part.total();
    const double seconds = to_seconds(time.total);
    time.tokens_per_second = static_cast<double>(input.routing.tokens) / seconds;
    time.mfu = time.flops / (seconds * input.machine.gpus() * input.machine.gpu.bf16_flops);
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
    const std::vector<SystemSpec> layers = as_layers(systems, options);
    const Comparison forward = simulate_pass(input, layers, options, Pass::forward);
    std::optional<Comparison> backward;
    if (options.training) backward = simulate_pass(input, layers, options, Pass::backward);

    const Sequences sequences =
        sequences_of(model, input.routing.tokens, input.machine.gpus(), options.sequence);
    const Rest rest = rest_of(model, input.machine.gpu, sequences, options);
    std::vector<ModelTime> times;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        ModelTime time;
        time.system = systems[i].name;
        time.spec = systems[i];
        time.moe = forward.rows[i].result;
        LayerTypeTime moe{"MoE layers", model.moe_layers(), time.moe.time, 0};
        if (backward) {
            time.moe_backward = backward->rows[i].result;
            moe.backward = time.moe_backward->time;
        }
        if (systems[i].overlap_passes) {
            time.overlapped = overlapped_time(input, systems[i], sequences, options);
            moe = {"attention, MoE layers", model.moe_layers(), 0, 0, time.overlapped->period};
        }
        time.parts =
            parts_of(model, time.overlapped ? apart_from_moe(model, rest) : rest, std::move(moe));
        time.flops = (options.training ? 3 : 1) * static_cast<double>(input.routing.tokens) *
                     flops_per_token(model, sequences);
        sum_up(time, input);
        times.push_back(std::move(time));
    }
    return times;
}

const ModelTime& baseline_of(const std::vector<ModelTime>& times) {
    const auto usual = std::find_if(times.begin(), times.end(),
                                    [](const auto& one) { return one.system == "megatron-te"; });
    if (usual != times.end()) return *usual;
    return *std::max_element(times.begin(), times.end(),
                             [](const auto& a, const auto& b) { return a.total < b.total; });
}

}  // namespace moehub
