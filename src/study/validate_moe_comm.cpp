// Dispatch and combine of a system that moves rows in steps of their own: a layer of nothing else,
// at row grain.
#include "study/validate_rows.hpp"

#include <moehub/error.hpp>
#include <moehub/layer.hpp>
#include <moehub/presets.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

LayerResult run(const MoeCommCase& what, const Machine& machine) {
    SystemSpec system = load_system(what.system);
    system.dispatch_element = what.dispatch_element;
    system.combine_element = what.combine_element;
    const Model model = model_of_rows(what.hidden, what.experts, what.top_k);
    const RoutingSpec spec = parse_routing(what.routing == "perfect" ? "balanced" : what.routing);
    const Routing routing = make_routing(spec, model, what.tokens_per_gpu * what.gpus);
    const Placement placement = contiguous_placement(what.experts, what.gpus);
    LayerOptions options;
    options.compute = false;
    return simulate_layer({machine, model, routing, placement}, system, options);
}

}  // namespace

Model model_of_rows(int hidden, int experts, int top_k) {
    Model model;
    model.name = "measured layer";
    model.layers = 1;
    model.hidden = hidden;
    model.experts = experts;
    model.top_k = top_k;
    model.expert_ffn = hidden;
    return model;
}

Prediction predict_moe_comm(const MoeCommCase& what, const PredictContext& context) {
    if (what.phase != "dispatch" && what.phase != "combine")
        return skip(fmt::format("unknown phase {}; known: dispatch, combine", what.phase));
    Machine machine;
    try {
        machine = context.machine(what.machine, what.gpus);
    } catch (const InputError& error) {
        return skip(error.what(), what.machine);
    }
    try {
        const LayerResult result = run(what, machine);
        return {to_us(what.phase == "dispatch" ? result.dispatch : result.combine), {}};
    } catch (const InputError& error) {
        return skip(error.what());
    }
}

}  // namespace moehub
