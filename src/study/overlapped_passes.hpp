/// DualPipe's overlap: a layer of one micro-batch forward beside a layer of another backward, so
/// that rows of one travel while the other computes.
///
/// Two lanes, compute and communication, each with one step at a time; a step runs to its end.
///
///     forward    attention → dispatch → experts → combine → attention of the next layer
///     backward   dispatch → experts → combine → attention → dispatch of the next layer
///                              └→ experts' weights   └→ attention's weights
///
/// Communication holds some SMs while rows are underway, which slows the step that computes. The
/// weights' gradients may wait, up to the same step of the next layer. Neither pass is more than a
/// layer ahead of the other. DualPipe's own order is tuned by hand and not published; here it is
/// the best of three lists: of the steps that are ready, inputs' gradients before weights', and
/// then first come, or forward, or backward first. What a pair of layers takes, once layers follow
/// one another steadily, is what comes out.
#pragma once
#include "study/model_rest.hpp"

#include <moehub/model_time.hpp>
#include <moehub/units.hpp>

#include <cstddef>
#include <vector>

namespace moehub {

struct KernelTime {
    Ps alone = 0;   ///< time with all SMs
    Ps beside = 0;  ///< time with the SMs that communication leaves; not less
};

/// What a layer takes one way. Backward, the dispatch brings gradients of the outputs to the
/// experts.
struct PassSteps {
    KernelTime attention = {};
    Ps dispatch = 0;
    KernelTime experts = {};
    Ps combine = 0;
    KernelTime expert_weights = {};  ///< only backward
    KernelTime attention_weights = {};
};

struct OverlappedSteps {
    PassSteps forward;
    PassSteps backward;

    Ps compute() const;  ///< time of all kernels with all SMs
    Ps communication() const;
};

/// How long a layer forward and one backward take beside each other.
struct OverlappedPair {
    Ps period = 0;  ///< time of both layers: at least either lane, at most both
    Ps busy = 0;    ///< part of the period in which kernels run
};
OverlappedPair overlap(const OverlappedSteps& steps);

// A transformer layer with experts, forward beside another's backward (overlapped_passes.hpp): how
// long its steps take, and what comes out.

/// The system with one pass after the other: a layer of it can be simulated.
SystemSpec without_overlap(SystemSpec system);

/// The attention outside MoE layers: that of dense layers.
Rest apart_from_moe(const Model& model, Rest rest);

/// Rows are simulated alone, on the SMs that communication holds; the dispatch counts from the
/// start on, with counts of rows and what the host must know of them. Experts and attention are
/// timed on all SMs and on those that are left. Throws as simulate_layer() does.
OverlappedTime overlapped_time(const LayerInput& input, const SystemSpec& system,
                               const Sequences& sequences, const ModelOptions& options);

// Steps on two lanes, kernels and rows underway, by list scheduling: whenever a lane is free it
// takes the first of its steps for which all before them are done, and runs it to its end.

enum class Lane { compute, communication };
/// Which of several steps is first; under every rule weights' gradients are last.
enum class LaneRule { first_come, forward_first, backward_first };

struct LaneStep {
    Lane lane = Lane::compute;
    KernelTime length;  ///< time of the step; rows underway: both times alike
    int layer = 0;
    bool backward = false;
    bool weights = false;
    std::vector<std::size_t> next;
    int missing = 0;  ///< steps before it that are not done
    Ps ready = 0;     ///< when the last step before it was done
    Ps begin = 0;
    Ps end = 0;
};

/// The steps with their times filled in. Throws std::logic_error when they wait for one another.
std::vector<LaneStep> run_lanes(std::vector<LaneStep> steps, LaneRule rule);

}  // namespace moehub
