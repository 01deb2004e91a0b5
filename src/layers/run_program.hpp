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

template <class Shared>
LayerResult run_program(const Job& job, const char* name, Process (*program)(Shared&, GpuId)) {
    MoeLayer layer(job);
    return run_on(layer, name, program);
}

/// With an eager host that is ahead without limit, and, where that is more than it gains in a
/// layer, again with what it gains.
template <class Shared>
LayerResult run_eager_program(const Job& job, const char* name,
                              Process (*program)(Shared&, GpuId)) {
    constexpr Ps kFarAhead = 1'000'000 * kUs;
    Job next = job;
    next.host_lead = kFarAhead;
    {
        MoeLayer layer(next);
        const LayerResult result = run_on(layer, name, program);
        next.host_lead = layer.gpus.host_lead_gained();
        if (next.host_lead >= layer.gpus.host_lead_needed()) return result;
    }
    return run_program(next, name, program);
}

}  // namespace moehub::layers
