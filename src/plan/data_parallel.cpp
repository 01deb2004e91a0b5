/// What data-parallel ranks exchange once a step, on the stage that has most of it:
///
///     sums   = reduce-scatter of gradients, beyond the last micro-batch's backward pass
///     gather = all-gather of weights, beyond the first micro-batch's forward pass
///
/// at least one layer's worth of each stays exposed: the last gradients are there when the pass
/// ends. Without sharding one all-reduce does both. Experts have ranks of their own. DualPipe's
/// two copies of a stage's weights exchange both, and share their optimizer states.
#include "plan/step_model.hpp"

#include <algorithm>

namespace moehub {
namespace {

/// What a pass of so many layers does not hide of `time`.
double beyond(double time, double pass, int layers, bool overlap) {
    return overlap ? std::max(time / std::max(1, layers), time - std::max(0.0, pass)) : time;
}

int layers_of(const UnitCounts& counts) {
    return count_of(counts, Unit::dense) + count_of(counts, Unit::moe) +
           count_of(counts, Unit::mtp);
}

}  // namespace

double StepModel::over_weights(Collective::Op op, const ParallelLayout& layout,
                               const UnitWeights& weights, double bytes, bool exact) {
    const int group = layout.ep * layout.etp;
    const GpuGroup data{run_.gpus() / (layout.pp * layout.tp), layout.tp};
    const GpuGroup sparse{run_.gpus() / (layout.pp * group), group};
    return communication_->collective(op, data, bytes * weights.shared, exact) +
           communication_->collective(op, sparse, bytes * weights.experts, exact);
}

DataParallelTime StepModel::data_parallel(const ParallelLayout& layout, const UnitTimes& times,
                                          const Pieces& pieces, bool exact) {
    DataParallelTime most;
    const auto stages = static_cast<std::size_t>(layout.pp);
    for (std::size_t stage = 0; stage < stages; ++stage) {
        StagePasses passes;
        for (const std::size_t piece :
             pieces_of_stage(stage, stages, pieces.counts.size(), layout.overlap)) {
            for (std::size_t u = 0; u < kUnits; ++u) passes.counts[u] += pieces.counts[piece][u];
            passes.forward += pieces.pipeline.times[piece].forward;
            passes.backward += pieces.pipeline.times[piece].backward;
        }
        // Rows between nodes use the same NICs, one after the other.
        if (layout.ep * layout.etp > run_.machine.gpus_per_node)
            for (std::size_t u = 0; u < kUnits; ++u) {
                passes.forward -= passes.counts[u] * times[u].forward.ep_alone;
                passes.backward -= passes.counts[u] * times[u].backward.ep_alone;
            }
        const DataParallelTime one = of_stage(layout, passes, pieces.pipeline.micro_batches, exact);
        if (one.sum() > most.sum()) most = one;
    }
    return most;
}

DataParallelTime StepModel::of_stage(const ParallelLayout& layout, const StagePasses& passes,
                                     std::int64_t micro_batches, bool exact) {
    using enum Collective::Op;
    const TrainerSpec& trainer = run_.trainer;
    const UnitWeights weights = weights_of(run_.model, layout, passes.counts);
    const int layers = layers_of(passes.counts);
    // DualPipe's copies of a stage's weights share their states.
    const double copies = layout.overlap == PassOverlap::dualpipe ? 2 : 1;
    const double share =
        layout.sharding == Sharding::none ? weights.sum() : weights.divided(run_, layout) / copies;
    DataParallelTime one;
    one.optimizer = kernels_.optimizer(share);
    if (layout.offload.optimizer)
        one.offload = trainer.state_bytes * share / run_.machine.gpu.host_bandwidth;
    if (layout.sharding == Sharding::fsdp) return one;
    const bool all = layout.sharding == Sharding::none;
    const double sums = over_weights(all ? all_reduce : reduce_scatter, layout, weights,
                                     trainer.gradient_bytes, exact);
    one.sums = beyond(sums, passes.backward, layers, trainer.gradients_overlap);
    if (layout.sharding == Sharding::zero2)
        one.sums +=
            static_cast<double>(micro_batches - 1) *
            beyond(sums, trainer.fsdp_overlap * passes.backward, layers, trainer.gradients_overlap);
    if (!all)
        one.gather = beyond(over_weights(all_gather, layout, weights, kBf16, exact), passes.forward,
                            layers, trainer.parameters_overlap);
    return one;
}

}  // namespace moehub
