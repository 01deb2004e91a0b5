// FuseLib through the switch: one persistent kernel, part of which computes tiles while the rest of
// its warps wait until all GPUs have made a piece, load its sum through the switch, normalise it
// and store it to all by multicast. The CAIS paper says no more than that multimem instructions
// were extended; vLLM's GEMM with an all-reduce is such a kernel. The part that communicates is
// `communication_sms` of the SMs; the norm is done between tiles, as FuseLib's here. All GPUs make
// pieces in the same order, and homes take turns, so that all of them have work from the start.
// Being part of the GEMM's kernel it costs no launch.
#include "layers/tp/tp_moves.hpp"
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace fuselib_nvls {

struct Shared {
    TpLayer& layer;
    SwitchedKernel kernel{layer, SwitchedKernel::Norm::between_tiles};
};

Process program(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    shared.kernel.hold(gpu);
    Several gemm(layer.gpus.endpoint(gpu));
    gemm.spawn("first GEMM", shared.kernel.run_first(gpu));
    co_await shared.kernel.run(gpu);
    co_await gemm.all();
    layer.gpus.combine_ended(gpu);
    co_await layer.run_second(gpu);
    layer.finish(gpu);
}

}  // namespace fuselib_nvls

LayerResult run_fuselib_nvls(const TpJob& job) {
    return run_tp_of_several(job, Homes::in_turn, fuselib_nvls::program);
}

}  // namespace moehub::systems
