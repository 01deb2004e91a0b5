#include "systems/eager_host.hpp"

namespace moehub::systems {

LayerResult run_eager(const Job& job, LayerResult (*run)(Layer&)) {
    constexpr Ps kFarAhead = 1'000'000 * kUs;
    Job ahead = job;
    ahead.host_lead = kFarAhead;
    Ps gained = 0;
    {
        Layer layer(ahead);
        const LayerResult result = run(layer);
        gained = layer.host_lead_gained();
        if (gained >= layer.host_lead_needed()) return result;
    }
    Job steady = job;
    steady.host_lead = gained;
    Layer layer(steady);
    return run(layer);
}

}  // namespace moehub::systems
