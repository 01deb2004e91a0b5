/// What a step takes at least, however the model is cut into stages. With W seconds of one
/// micro-batch in the whole model, p stages and m micro-batches:
///
///     T ≥ m · W / p                     the busiest stage has the mean at least
///     T ≥ W / (1 − (1 − 1/m)^p)         one piece a stage, nothing overlapped
///
/// The second: stage s works m · w(s), and before its first and behind its last task a micro-batch
/// passes all stages before it, w(0) + … + w(s − 1). No T is smaller than with all of these equal,
/// w(s) = (T − w(0) − … − w(s − 1)) / m.
#include "plan/step_model.hpp"

#include <algorithm>

namespace moehub {

double StepModel::least_seconds(const ParallelLayout& layout) {
    const UnitTimes times = unit_times(layout, false);
    const UnitCounts all = units_of(run_);
    const bool overlaps = layout.overlap != PassOverlap::none;
    double forward = 0;
    double backward = 0;
    double device = 0;  // but for rows underway
    double issue = 0;
    double kept = 0;
    for (std::size_t u = 0; u < kUnits; ++u) {
        forward += all[u] * times[u].forward.seconds();
        backward += all[u] * times[u].backward.seconds();
        for (const PassTime* pass : {&times[u].forward, &times[u].backward}) {
            device += all[u] * (pass->device() - pass->ep_alone);
            issue += all[u] * pass->issue;
        }
        if (layout.offload.activations)
            kept += all[u] * activations_of(run_, layout, static_cast<Unit>(u));
    }
    const double moved = kept / run_.machine.gpu.host_bandwidth;  // each way
    const double work = (overlaps ? std::max(device, issue) : forward + backward) +
                        std::max(0.0, moved - forward) + std::max(0.0, moved - backward);
    const double ranks =
        static_cast<double>(run_.gpus()) / (double{1} * layout.tp * layout.cp * layout.pp);
    const double batches = static_cast<double>(run_.global_batch) / (ranks * layout.micro_batch);
    double pipeline = batches * work / layout.pp;
    if (!overlaps && layout.vpp == 1) {
        double others = 1;
        for (int stage = 0; stage < layout.pp; ++stage) others *= 1 - 1 / batches;
        pipeline = std::max(pipeline, work / (1 - others));
    }
    const UnitWeights weights = weights_of(run_.model, layout, all);
    const double share = layout.sharding == Sharding::none
                             ? weights.shared + weights.experts
                             : weights.shared / data_group(layout).size +
                                   weights.experts / expert_data_group(layout).size;
    double once = kernels_.optimizer(share / layout.pp) + to_seconds(run_.trainer.step_host);
    if (layout.offload.optimizer)
        once += run_.trainer.state_bytes * share / layout.pp / run_.machine.gpu.host_bandwidth;
    return pipeline + once;
}

}  // namespace moehub
