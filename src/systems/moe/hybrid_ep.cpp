// HybridEP's kernels with grouped GEMMs: SMs whose copy engines move whole rows, one copy of a
// token to each GPU that needs it, straight to where it belongs. Between nodes a token crosses once
// for each node, in chunks, to the GPU of the sender's rail, which forwards it.
//
// Who gets what is known from everyone's choices: all GPUs gather a byte for each token and expert.
// Beside a copy goes a weight for every expert of the node, chosen or not.
#include "systems/moe/copies_layer.hpp"
#include "systems/moe/forwarded.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace hybrid_ep {

struct CopyEngineWays : ForwardedExchange {
    explicit CopyEngineWays(MoeLayer& of) : ForwardedExchange(of, copy_engines), layer(of) {}
    Bytes announcement_bytes(GpuId from, GpuId) const {
        return Bytes{layer.tokens(from)} * layer.input.model.experts;
    }
    Bytes beside() const {
        constexpr Bytes kWeight = 4;
        const int nodes = layer.input.machine.nodes;
        return kWeight * ((layer.input.model.experts + nodes - 1) / nodes);
    }
    MoeLayer& layer;
};

}  // namespace hybrid_ep

LayerResult run_hybrid_ep(const Job& job) {
    return run_program(job, "hybrid-ep layer", run_copies_layer<hybrid_ep::CopyEngineWays>);
}

}  // namespace moehub::systems
