/// How a system's program is run on a layer: what its GPUs share is made from the layer, the
/// program is started on every GPU, and the books are checked when nothing is left to do.
#pragma once
#include "layers/host.hpp"
#include "layers/moe_layer.hpp"

#include <functional>

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

/// With the lead L that an eager host keeps from layer to layer; `run_layer` makes a result of a
/// layer. First with a host that is ahead without limit. Where that is more than it keeps, again:
/// a host that waits starts with what it gained after its wait; one that never waits, and needs H
/// to issue a layer that then takes T(L), starts the next with L + T(L) - H, and so goes on until
/// the layer lasts as long as its host. A backward pass is issued from its start on.
LayerResult run_with_host(const Job& job, const std::function<LayerResult(MoeLayer&)>& run_layer);

template <class Shared>
LayerResult run_program(const Job& job, const char* name, Process (*program)(Shared&, GpuId)) {
    return run_with_host(job, [&](MoeLayer& layer) { return run_on(layer, name, program); });
}

}  // namespace moehub::layers
