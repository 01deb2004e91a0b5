#include "study/overlapped_passes.hpp"

#include "study/lanes.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

namespace moehub {
namespace {

constexpr int kLayers = 256;       // that follow one another
constexpr int kSettled = 64;       // from here on steadily
constexpr int kUndisturbed = 192;  // until here not yet at the end

/// All steps of many layers both ways, and what waits for what.
class Layers {
  public:
    explicit Layers(const OverlappedSteps& steps) {
        for (int layer = 0; layer < kLayers; ++layer) {
            const Ends before = layer > 0 ? ends_.back() : Ends{};
            const Ends before_that = layer > 1 ? ends_[ends_.size() - 2] : Ends{};
            ends_.push_back(add_layer(steps, layer, before, before_that));
        }
    }
    std::vector<LaneStep> list;

  private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    struct Ends {  // of a layer: the last step of either way, and the weights'
        std::size_t forward = kNone;
        std::size_t backward = kNone;
        std::size_t expert_weights = kNone;
        std::size_t attention_weights = kNone;
    };

    std::size_t add(LaneStep step, std::initializer_list<std::size_t> after) {
        for (const std::size_t one : after) {
            if (one == kNone) continue;
            list[one].next.push_back(list.size());
            ++step.missing;
        }
        list.push_back(std::move(step));
        return list.size() - 1;
    }

    Ends add_layer(const OverlappedSteps& steps, int layer, const Ends& before,
                   const Ends& before_that) {
        const auto kernels = [&](KernelTime length, bool backward, bool weights = false) {
            LaneStep step;
            step.length = length;
            step.layer = layer;
            step.backward = backward;
            step.weights = weights;
            return step;
        };
        const auto rows = [&](Ps length, bool backward) {
            LaneStep step = kernels({length, length}, backward);
            step.lane = Lane::communication;
            return step;
        };
        Ends ends;
        const PassSteps& there = steps.forward;
        std::size_t at =
            add(kernels(there.attention, false), {before.forward, before_that.backward});
        at = add(rows(there.dispatch, false), {at});
        at = add(kernels(there.experts, false), {at});
        ends.forward = add(rows(there.combine, false), {at});

        const PassSteps& back = steps.backward;
        at = add(rows(back.dispatch, true), {before.backward, before_that.forward});
        at = add(kernels(back.experts, true), {at, before.expert_weights});
        ends.expert_weights = add(kernels(back.expert_weights, true, true), {at});
        at = add(rows(back.combine, true), {at});
        ends.backward = add(kernels(back.attention, true), {at, before.attention_weights});
        ends.attention_weights = add(kernels(back.attention_weights, true, true), {ends.backward});
        return ends;
    }

    std::vector<Ends> ends_;
};

OverlappedPair settled(const OverlappedSteps& steps, LaneRule rule) {
    std::array<Ps, kLayers> ends{};
    Ps busy = 0;
    for (const LaneStep& step : run_lanes(Layers(steps).list, rule)) {
        Ps& end = ends[static_cast<std::size_t>(step.layer)];
        end = std::max(end, step.end);
        const bool counts = step.layer > kSettled && step.layer <= kUndisturbed;
        if (counts && step.lane == Lane::compute) busy += step.end - step.begin;
    }
    constexpr Ps kPairs = kUndisturbed - kSettled;
    return {(ends[kUndisturbed] - ends[kSettled]) / kPairs, busy / kPairs};
}

Ps alone(const PassSteps& steps) {
    return steps.attention.alone + steps.experts.alone + steps.expert_weights.alone +
           steps.attention_weights.alone;
}

}  // namespace

Ps OverlappedSteps::compute() const {
    return alone(forward) + alone(backward);
}

Ps OverlappedSteps::communication() const {
    return forward.dispatch + forward.combine + backward.dispatch + backward.combine;
}

OverlappedPair overlap(const OverlappedSteps& steps) {
    OverlappedPair best;
    for (const LaneRule rule :
         {LaneRule::first_come, LaneRule::forward_first, LaneRule::backward_first}) {
        const OverlappedPair pair = settled(steps, rule);
        if (rule == LaneRule::first_come || pair.period < best.period) best = pair;
    }
    // Between two layers in the middle a lane may have done a step less than its share.
    best.period = std::max({best.period, best.busy, steps.communication()});
    return best;
}

}  // namespace moehub
