// A layer of `torch`, simulated on one GPU that waits for nothing else: called on an idle card, so
// the host has no lead; replayed as a graph; or forward and backward, where the host is ahead on
// the way back by what it gained on the way out.
//
// Repeated without a pause, long layers run at the clock that the card's power allows, as long
// operators do (tile.hpp).
#include "study/validate_whole_layers.hpp"

#include "sim/gpu/tile.hpp"
#include "study/model_share.hpp"
#include "systems/systems.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::int64_t kMostTokens = 10'000'000;
constexpr std::array<std::string_view, 3> kWays = {"eager", "graph", "eager_forward_backward"};

/// The layer as it was measured: no shared experts, no groups of experts.
LayerInput input_of(const Model& whole, std::int64_t tokens, const Gpu& gpu) {
    Model model = whole;
    model.shared_experts = 0;
    model.expert_groups = model.top_groups = 1;
    Machine machine = with_gpus(load_machine("dgx-h200"), 1);
    machine.gpu = gpu;
    return {machine, model, make_routing(parse_routing("uniform"), model, tokens),
            contiguous_placement(model.experts, 1)};
}

struct Run {
    Ps time = 0;
    double tensor = 0;  ///< share of it in which tensor cores are busy
};

Run run(const LayerInput& input, std::string_view way) {
    SystemSpec system = load_system("torch");
    if (way == "graph") system.host = HostMode::graph;
    LayerOptions options;
    options.recorded = way == "eager_forward_backward";
    check_layer(input, system, options);
    const LayerResult forward = systems::run_job({input, system, options, Ps{0}});
    if (way == "graph")
        return {forward.time + input.machine.gpu.kernels.graph_replay, forward.tensor_busy};
    if (way == "eager") return {forward.time, forward.tensor_busy};
    options.pass = Pass::backward;
    const LayerResult backward = systems::run_job({input, system, options, forward.host_lead});
    const Ps time = forward.time + backward.time;
    const double busy = to_seconds(forward.time) * forward.tensor_busy +
                        to_seconds(backward.time) * backward.tensor_busy;
    return {time, busy / to_seconds(time)};
}

}  // namespace

std::vector<WholeLayerCase> parse_whole_layer(const CsvRow& row) {
    std::vector<WholeLayerCase> cases;
    for (const auto way : kWays) {
        WholeLayerCase parsed;
        parsed.model = row.text("model");
        parsed.tokens = row.integer("tokens", 1, kMostTokens);
        row.integer("max_rows", 1, kMostTokens);
        parsed.measurement.name = way;
        parsed.measurement.shape = shape_of(row, {"model", "tokens", "max_rows"});
        parsed.measurement.shape.emplace_back("way", way);
        parsed.measurement.value = value_in(row, fmt::format("{}_us", way));
        parsed.measurement.unit = "us";
        cases.push_back(std::move(parsed));
    }
    return cases;
}

Prediction predict_whole_layer(const WholeLayerCase& what, const PredictContext& context) {
    try {
        const Model model = load_model_share(what.model);
        LayerInput input = input_of(model, what.tokens, context.gpu);
        const Run full = run(input, what.measurement.name);
        const double clock = repeated_clock(context.gpu, to_seconds(full.time), full.tensor);
        if (clock == 1) return {to_us(full.time), {}};
        input.machine.gpu = at_clock(context.gpu, clock);
        return {to_us(run(input, what.measurement.name).time), {}};
    } catch (const InputError& error) {
        return {std::nullopt, error.what(), what.model};
    }
}

}  // namespace moehub
