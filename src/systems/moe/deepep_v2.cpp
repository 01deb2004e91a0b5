// DeepEP's second version with grouped GEMMs: few SMs whose copy engines move whole rows, one copy
// of a token to each GPU that needs it, straight to where it belongs. Between nodes a token crosses
// once for each node, to the GPU of the sender's rail, which forwards it. Counts are told first.
#include "systems/moe/copies_layer.hpp"
#include "systems/moe/forwarded.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace deepep_v2 {

struct CountedWays : ForwardedExchange {
    explicit CountedWays(MoeLayer& of) : ForwardedExchange(of, copy_engines), layer(of) {}
    Bytes announcement_bytes(GpuId, GpuId to) const { return bytes_of_counts(layer, to); }
    Bytes beside() const { return bytes_of_choices(layer); }
    MoeLayer& layer;
};

}  // namespace deepep_v2

LayerResult run_deepep_v2(const Job& job) {
    return run_program(job, "deepep-v2 layer", run_copies_layer<deepep_v2::CountedWays>);
}

}  // namespace moehub::systems
