// DeepEP's second version with grouped GEMMs: few SMs whose copy engines move whole rows, one copy
// of a token to each GPU that needs it, straight to where it belongs. Between nodes a token crosses
// once for each node, to the GPU of the sender's rail, which forwards it. Counts are told first.
#include "systems/moe/copies_layer.hpp"
#include "systems/moe/forwarded.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
LayerResult run_deepep_v2(const Job& job) {
    return run_program(job, "deepep-v2 layer", run_copies_layer<CountedWays<copy_engines>>);
}

}  // namespace moehub::systems
