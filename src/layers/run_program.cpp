#include "layers/run_program.hpp"

#include <algorithm>
#include <cstdlib>

namespace moehub::layers {

LayerResult run_with_host(const Job& job, const std::function<LayerResult(MoeLayer&)>& run_layer) {
    constexpr Ps kFarAhead = 1'000'000 * kUs;
    constexpr int kMostRounds = 12;
    constexpr Ps kNear = 200;  // of the layer's time: leads that differ by a 200th are the same
    const bool backward = job.options.pass == Pass::backward;
    if (job.system.host == HostMode::graph || backward || job.host_lead) {
        MoeLayer layer(job);
        return run_layer(layer);
    }
    Job next = job;
    next.host_lead = kFarAhead;
    for (int round = 0;; ++round) {
        MoeLayer layer(next);
        LayerResult result = run_layer(layer);
        const Gpus& gpus = layer.gpus;
        const Ps gained = gpus.host_lead_gained();
        const bool kept = gained >= (gpus.host_waits() ? gpus.host_lead_needed() : kFarAhead);
        if (round == 0 && kept) return result;
        const bool same = std::abs(gained - *next.host_lead) <= result.time / kNear;
        if (round > 0 && (gpus.host_waits() || same || round == kMostRounds)) return result;
        if (job.options.another_round) job.options.another_round();
        next.host_lead = gpus.host_waits() ? std::min(gained, result.time)
                         : round == 0      ? 0
                                           : gained;
    }
}

}  // namespace moehub::layers
