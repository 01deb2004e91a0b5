/// The parts of a served step, and how they are put together.
#pragma once
#include <moehub/served_model.hpp>

namespace moehub {

/// A MoE layer's routed experts and what moves their rows, of one micro-batch; seconds.
struct MoeTimes {
    double dispatch = 0;  ///< seconds; 0 where rows do not move in a step of their own
    double combine = 0;
    double experts = 0;        ///< seconds of kernels; of systems without steps the whole layer
    double waits = 0;          ///< seconds of counts, launches, waiting for other GPUs
    double dispatch_work = 0;  ///< seconds of a dispatch that holds SMs it can leave
    double combine_work = 0;
    double network_busy = 0;
    std::string busiest_link;

    double total() const { return dispatch + combine + experts + waits; }
};

/// Simulates the layer for so many tokens a GPU; of many tokens it is extended from fewer.
MoeTimes moe_times(const Serving& serving, const SystemSpec& system, std::int64_t tokens_per_gpu);

/// Operators of the layer, `layers` of each.
std::vector<StepOperator> operators_of(const MoeTimes& moe, double layers);

/// All but the MoE layers' experts and rows, of one load; seconds.
struct RestOfStep {
    std::vector<StepOperator> operators;
    double once = 0;   ///< seconds of the model's ends and its host
    double dense = 0;  ///< seconds that dense layers have beyond what all layers have
    double layer = 0;  ///< seconds of any layer: what all have
};

/// What holds for all systems.
struct PreparedStep {
    RestOfStep whole;
    RestOfStep half;    ///< rest of one half in two-batch overlap
    double drafts = 0;  ///< seconds of all guesses of a step
};
/// Throws InputError as check() does, and for a dense model.
void check_served(const Serving& serving);
PreparedStep prepare(const Serving& serving, const ServingClock& clock);
/// Simulates the MoE layer. Several threads may call it.
ServedStep serve_prepared(const Serving& serving, const PreparedStep& prepared,
                          const SystemSpec& system);

/// What one layer of half a batch takes; kernels with all SMs, and beside rows that travel.
struct HalfLayer {
    double rest = 0;  ///< seconds of all but the MoE layer's experts and rows
    double rest_beside = 0;
    MoeTimes moe;
    double experts_beside = 0;
};
/// Seconds from one layer to the next, both halves together.
double two_batch_period(const HalfLayer& half);

}  // namespace moehub
