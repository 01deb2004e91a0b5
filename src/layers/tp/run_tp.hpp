/// How a system's program is run on a tensor-parallel sub-layer.
#pragma once
#include "layers/tp/tp_layer.hpp"

namespace moehub::layers {

/// What its GPUs share is made from the layer; the program is started on every GPU, and the books
/// are checked when nothing is left to do. `travel`: rows are underway all the time; the bound has
/// none.
template <class Shared>
LayerResult run_tp(const TpJob& job, Homes homes, Process (*program)(Shared&, GpuId),
                   bool travel = true) {
    TpLayer layer(job, homes);
    Shared shared(layer);
    // After an error programs still stand somewhere: they go before what they share.
    struct DropPrograms {
        Gpus& gpus;
        ~DropPrograms() { gpus.fabric.drop_programs(); }
    } const drop{layer.gpus};
    layer.gpus.run("sub-layer", [&](GpuId gpu) {
        if (travel) layer.begin(gpu);
        return program(shared, gpu);
    });
    return layer.result();
}

}  // namespace moehub::layers
