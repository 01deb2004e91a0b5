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

/// Of a time, what a pass of so many layers does not hide.
double beyond(double time, double pass, int layers, bool overlap) {
    return overlap ? std::max(time / std::max(1, layers), time - std::max(0.0, pass)) : time;
}

int layers_of(const UnitCounts& counts) {
    return count_of(counts, Unit::dense) + count_of(counts, Unit::moe) +
           count_of(counts, Unit::mtp);
}

}  // namespace

GpuGroup StepModel::data_group(const ParallelLayout& layout) const {
    return {run_.gpus() / (layout.pp * layout.tp), layout.tp};
}

GpuGroup StepModel::expert_data_group(const ParallelLayout& layout) const {
    const int group = layout.ep * layout.etp;
    return {run_.gpus() / (layout.pp * group), group};
}

DataParallelTime StepModel::data_parallel(const ParallelLayout& layout, const UnitTimes& times,
                                          const Pieces& pieces, bool exact) {
    using enum Collective::Op;
    const TrainerSpec& trainer = run_.trainer;
    const GpuGroup data = data_group(layout);
    const GpuGroup sparse = expert_data_group(layout);
    const auto ask = [&](Collective::Op op, const UnitWeights& w, double each) {
        return communication_->collective(op, data, each * w.shared, exact) +
               communication_->collective(op, sparse, each * w.experts, exact);
    };
    const auto stages = static_cast<std::size_t>(layout.pp);
    const bool dual = layout.overlap == PassOverlap::dualpipe;
    const double copies = dual ? 2 : 1;  // of each stage's weights, which share their states
    const bool outside = layout.ep * layout.etp > run_.machine.gpus_per_node;
    const auto batches = static_cast<double>(pieces.pipeline.micro_batches);
    DataParallelTime most;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        UnitCounts counts{};
        double forward = 0;
        double backward = 0;
        const auto add_piece = [&](std::size_t i) {
            for (std::size_t u = 0; u < kUnits; ++u) counts[u] += pieces.counts[i][u];
            forward += pieces.pipeline.times[i].forward;
            backward += pieces.pipeline.times[i].backward;
        };
        for (std::size_t i = stage; i < pieces.counts.size(); i += stages) add_piece(i);
        if (dual) add_piece(stages - 1 - stage);
        // Rows between nodes use the same NICs, one after the other.
        for (std::size_t u = 0; u < kUnits && outside; ++u) {
            forward -= counts[u] * times[u].forward.ep_alone;
            backward -= counts[u] * times[u].backward.ep_alone;
        }
        const UnitWeights w = weights_of(run_.model, layout, counts);
        const int layers = layers_of(counts);
        DataParallelTime one;
        const double share = layout.sharding == Sharding::none
                                 ? w.shared + w.experts
                                 : (w.shared / data.size + w.experts / sparse.size) / copies;
        one.optimizer = kernels_.optimizer(share);
        if (layout.offload.optimizer)
            one.offload = trainer.state_bytes * share / run_.machine.gpu.host_bandwidth;
        if (layout.sharding == Sharding::none) {
            one.sums = beyond(ask(all_reduce, w, trainer.gradient_bytes), backward, layers,
                              trainer.gradients_overlap);
        } else if (layout.sharding != Sharding::fsdp) {
            const double sums = ask(reduce_scatter, w, trainer.gradient_bytes);
            one.sums = beyond(sums, backward, layers, trainer.gradients_overlap);
            if (layout.sharding == Sharding::zero2)
                one.sums += (batches - 1) * beyond(sums, trainer.fsdp_overlap * backward, layers,
                                                   trainer.gradients_overlap);
            one.gather =
                beyond(ask(all_gather, w, kBf16), forward, layers, trainer.parameters_overlap);
        }
        const auto sum = [](const DataParallelTime& t) {
            return t.sums + t.gather + t.optimizer + t.offload;
        };
        if (sum(one) > sum(most)) most = one;
    }
    return most;
}

}  // namespace moehub
