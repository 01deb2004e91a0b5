/// Two halves of a batch, each with its own chain of steps through all layers:
///
///     kernels (attention, router, shared experts) → dispatch → experts → combine → next layer,
///
/// on two lanes, kernels and rows that travel. A dispatch whose kernel can leave its SMs while rows
/// travel is two steps, its work on the lane of kernels and the rest on the other; one that holds a
/// few SMs travels beside kernels that have the others.
#include "study/lanes.hpp"
#include "study/serving/served_parts.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace moehub {
namespace {

constexpr int kLayers = 48;  ///< that follow one another
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
        LaneStep step;
        step.lane = lane;
        step.length = length;
        step.layer = layer;
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
