#include "study/overlapped_passes.hpp"
#include "study/serving/served_parts.hpp"

#include <moehub/predict.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace moehub {
namespace {

/// Tokens of one GPU, above which a layer is simulated with half and all of them and extended
/// linearly.
constexpr std::int64_t kMostSimulated = 2048;

LayerInput layer_of(const Serving& serving, std::int64_t tokens_per_gpu) {
    LayerInput input{serving.what.machine, serving.what.model, {}, serving.placement};
    input.machine.gpu = with_kernels(input.machine.gpu, serving.what.engine.dispatched);
    input.model.shared_experts = input.model.shared_ffn = 0;  // they are the engine's
    const std::int64_t tokens = tokens_per_gpu * serving.gpus();
    input.routing = serving.recorded ? one_layer(*serving.recorded, 0, tokens)
                                     : make_routing(serving.routing, input.model, tokens);
    return input;
}

const LinkUse* busiest(const LayerResult& result) {
    const auto most =
        std::max_element(result.links.begin(), result.links.end(),
                         [](const LinkUse& a, const LinkUse& b) { return a.busy < b.busy; });
    return most == result.links.end() ? nullptr : &*most;
}

MoeTimes simulate(const Serving& serving, const SystemSpec& system, std::int64_t tokens_per_gpu) {
    LayerOptions options = serving.layer;
    options.router = false;
    options.tensor_parallel = serving.what.layout.moe_tp;
    const LayerResult result = simulate_layer(layer_of(serving, tokens_per_gpu), system, options);
    MoeTimes times;
    times.dispatch = to_seconds(result.dispatch);
    times.combine = to_seconds(result.combine);
    times.dispatch_work = to_seconds(result.dispatch_work);
    times.combine_work = to_seconds(result.combine_work);
    const double rest = to_seconds(result.time) - times.dispatch - times.combine;
    const bool steps = result.dispatch > 0;
    times.experts = steps ? std::min(rest, to_seconds(result.breakdown.compute)) : rest;
    times.waits = rest - times.experts;
    if (serving.what.formats.experts == NumberFormat::w4a16)
        times.experts +=
            to_seconds(serving.what.engine.overheads(serving.what.machine.gpu.generation).w4_start);
    if (const LinkUse* const link = busiest(result)) {
        times.network_busy = static_cast<double>(link->busy) / static_cast<double>(result.time);
        times.busiest_link = link->from + " to " + link->to;
    }
    return times;
}

/// Times of a layer extrapolated from `less` through `more` to `steps` such distances beyond it.
MoeTimes extended(const MoeTimes& less, const MoeTimes& more, double steps) {
    MoeTimes far = more;
    for (double MoeTimes::*part :
         {&MoeTimes::dispatch, &MoeTimes::combine, &MoeTimes::experts, &MoeTimes::waits,
          &MoeTimes::dispatch_work, &MoeTimes::combine_work})
        far.*part = std::max(0.0, more.*part + steps * (more.*part - less.*part));
    return far;
}

}  // namespace

MoeTimes moe_times(const Serving& serving, const SystemSpec& system, std::int64_t tokens_per_gpu) {
    if (tokens_per_gpu <= kMostSimulated) return simulate(serving, system, tokens_per_gpu);
    constexpr std::int64_t kHalf = kMostSimulated / 2;
    const double steps = static_cast<double>(tokens_per_gpu - kMostSimulated) / kHalf;
    return extended(simulate(serving, system, kHalf), simulate(serving, system, kMostSimulated),
                    steps);
}

std::vector<StepOperator> operators_of(const MoeTimes& moe, double layers) {
    if (moe.dispatch == 0) return {{"MoE layer", OperatorKind::experts, layers, moe.experts}};
    std::vector<StepOperator> operators;
    const auto move = [&](const std::string& name, OperatorKind kind, double all, double work) {
        if (work > 0) operators.push_back({name + " kernels", kind, layers, work});
        operators.push_back({work > 0 ? name + " underway" : name, kind, layers, all - work});
    };
    move("dispatch", OperatorKind::dispatch, moe.dispatch, moe.dispatch_work);
    operators.push_back({"experts", OperatorKind::experts, layers, moe.experts});
    move("combine", OperatorKind::combine, moe.combine, moe.combine_work);
    operators.push_back({"waits", OperatorKind::host, layers, moe.waits});
    return operators;
}

SystemSpec served_system(SystemSpec system, const ServingFormats& formats) {
    if (system.program != "ideal") system.host = HostMode::graph;
    system.expert_format = formats.experts;
    system.dispatch_element = system.narrow_experts() ? 1 : 2;
    return system;
}

// Two halves of a batch, each with its own chain of steps through all layers:
//
//     kernels (attention, router, shared experts) → dispatch → experts → combine → next layer,
//
// on two lanes, kernels and rows that travel. A dispatch whose kernel can leave its SMs while rows
// travel is two steps, its work on the lane of kernels and the rest on the other; one that holds a
// few SMs travels beside kernels that have the others.

namespace {

constexpr int kLayers = 48;  ///< layers that follow one another
constexpr int kSettled = 16;

Ps ps(double seconds) {
    return std::llround(seconds * 1e12);
}

class Halves {
  public:
    explicit Halves(const HalfLayer& half) {
        std::optional<std::size_t> last[2];
        for (int layer = 0; layer < kLayers; ++layer)
            for (std::optional<std::size_t>& end : last) end = add_layer(half, layer, end);
    }
    std::vector<LaneStep> list;

  private:
    std::size_t add(Lane lane, KernelTime length, int layer, std::optional<std::size_t> after) {
        LaneStep step{.lane = lane, .length = length, .layer = layer, .next = {}};
        if (after) {
            list[*after].next.push_back(list.size());
            step.missing = 1;
        }
        list.push_back(std::move(step));
        return list.size() - 1;
    }

    std::size_t add_layer(const HalfLayer& half, int layer, std::optional<std::size_t> after) {
        const auto kernels = [&](double alone, double beside) {
            after = add(Lane::compute, {ps(alone), ps(beside)}, layer, after);
        };
        const auto rows = [&](double all, double work) {
            after = add(Lane::communication, {ps(all - work), ps(all - work)}, layer, after);
        };
        const MoeTimes& moe = half.moe;
        kernels(half.rest + moe.dispatch_work, half.rest_beside + moe.dispatch_work);
        rows(moe.dispatch + moe.waits, moe.dispatch_work);
        kernels(moe.experts + moe.combine_work, half.experts_beside + moe.combine_work);
        rows(moe.combine, moe.combine_work);
        return *after;
    }
};

}  // namespace

double two_batch_period(const HalfLayer& half) {
    std::vector<Ps> ends(kLayers);
    for (const LaneStep& step : run_lanes(Halves(half).list, LaneRule::first_come)) {
        Ps& end = ends[static_cast<std::size_t>(step.layer)];
        end = std::max(end, step.end);
    }
    return to_seconds(ends[kLayers - 1] - ends[kSettled]) / (kLayers - 1 - kSettled);
}

}  // namespace moehub
