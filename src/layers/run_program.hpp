/// How a system's program is run on a layer: what its GPUs share is made from the layer, the
/// program is started on every GPU, and the books are checked when nothing is left to do.
#pragma once
#include "layers/host.hpp"
#include "layers/moe_layer.hpp"

namespace moehub::layers {

template <class Shared>
LayerResult run_on(MoeLayer& layer, const char* name, Process (*program)(Shared&, GpuId)) {
    Shared shared(layer);
    // After an error programs still stand somewhere: they go before what they share.
    struct DropPrograms {
        Gpus& gpus;
        ~DropPrograms() { gpus.fabric.drop_programs(); }
    } const drop{layer.gpus};
    layer.gpus.run(name, [&](GpuId gpu) { return program(shared, gpu); });
    return layer.result();
}

/// With the lead that an eager host keeps from layer to layer: `run_layer` makes a result of a
/// layer. First with a host that is ahead without limit, and, where that is more than it gains in a
/// layer, again with what it gains. A backward pass is issued from its start on.
template <class Run>
LayerResult run_with_host(const Job& job, Run run_layer) {
    const bool backward = job.options.pass == Pass::backward;
    if (job.system.host == HostMode::graph || backward || job.host_lead) {
        MoeLayer layer(job);
        return run_layer(layer);
    }
    constexpr Ps kFarAhead = 1'000'000 * kUs;
    Job next = job;
    next.host_lead = kFarAhead;
    {
        MoeLayer layer(next);
        LayerResult result = run_layer(layer);
        next.host_lead = layer.gpus.host_lead_kept();
        if (*next.host_lead >= layer.gpus.host_lead_needed()) return result;
    }
    MoeLayer layer(next);
    return run_layer(layer);
}

template <class Shared>
LayerResult run_program(const Job& job, const char* name, Process (*program)(Shared&, GpuId)) {
    return run_with_host(job, [&](MoeLayer& layer) { return run_on(layer, name, program); });
}

}  // namespace moehub::layers
