// The stage that has most has at least the mean of all:
//
//     least = (weights + gradients + states + activations of the model) / stages + what every
//             stage has
//
// with activations of as many passes as the last stage holds, which holds fewest: one, or of an
// interleaved pipeline (pieces − 1) · stages + 1 of a piece.
#include "plan/search/least_memory.hpp"

#include "plan/search/axes.hpp"
#include "plan/step_model.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// Micro-batches whose activations a stage holds at least.
double fewest_held(const TrainingRun& run, const ParallelLayout& layout) {
    if (layout.vpp == 1) return 1;
    const double passes = (layout.vpp - 1.0) * layout.pp + 1;
    const auto all = static_cast<double>(micro_batches_of(run, layout) * layout.vpp);
    const double held = std::min(passes, all) / layout.vpp;
    return layout.offload.activations ? std::min(held, 2.0) : held;
}

}  // namespace

double least_memory(const TrainingRun& run, const ParallelLayout& layout) {
    const StepMemory model = memory_of(run, layout, {units_of(run)}, {1});
    const StepMemory empty = memory_of(run, layout, {UnitCounts{}}, {1});
    const double shared_out = model.weights + model.gradients + model.optimizer +
                              model.activations * fewest_held(run, layout);
    const double share_of_margin = empty.margin / (empty.sum() - empty.margin);
    return (shared_out / layout.pp + empty.buffers + empty.workspace) * (1 + share_of_margin);
}

}  // namespace moehub
