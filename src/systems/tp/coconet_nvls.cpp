// CoCoNet through the switch: its two kernels at once, with in-switch loads of sums and multicast
// stores in place of the ring. The CAIS paper says no more than that multimem instructions were
// extended; read here: the second kernel loads the sum of its GPU's share of every chunk that all
// GPUs have made, normalises it, and stores it to all. All GPUs make pieces in the same order, and
// homes take turns, as NCCL's chunks do, so that all of them have work from the start.
#include "layers/tp/tp_moves.hpp"
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace coconet_nvls {

struct Shared {
    TpLayer& layer;
    SwitchedKernel kernel{layer, SwitchedKernel::Norm::own_sms};
};

Process program(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    shared.kernel.hold(gpu);
    Several gemm(layer.gpus.endpoint(gpu));
    gemm.spawn("first GEMM", shared.kernel.run_first(gpu));
    co_await layer.gpus.endpoint(gpu).delay(layer.input.machine.collective.switch_launch);
    co_await shared.kernel.run(gpu);
    co_await gemm.all();
    layer.gpus.combine_ended(gpu);
    co_await layer.run_second(gpu);
    layer.finish(gpu);
}

}  // namespace coconet_nvls

LayerResult run_coconet_nvls(const TpJob& job) {
    return run_tp_of_several(job, Homes::in_turn, coconet_nvls::program);
}

}  // namespace moehub::systems
