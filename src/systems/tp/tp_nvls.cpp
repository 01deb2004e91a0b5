// Megatron's tensor parallelism through the switch: a GEMM, an in-switch all-reduce, a norm that
// every GPU repeats on all rows, a GEMM, one after the other. Beside experts, where rows are on one
// GPU at the other end, Megatron asks for sequence parallelism: so does this.
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace tp_nvls {

struct Shared {
    TpLayer& layer;
    sim::Communicator all{layer.gpus.fabric, "an in-switch all-reduce"};
};

Process program(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    co_await layer.run_first(gpu);
    layer.gpus.combine_began(gpu);
    {
        const sim::Launched launched(layer.gpus.card(gpu), KernelName::reduce);
        co_await all_reduce_slice(shared.all, gpu, own_sums(layer, gpu),
                                  own_outputs(layer, gpu, layer.totals).target);
    }
    layer.gpus.combine_ended(gpu);
    share_own(layer, gpu, TpLayer::Sum::all_in_totals, false);
    co_await run_stream(layer.gpus.card(gpu), layer.norm_traffic(layer.rows(), 0),
                        KernelName::norm);
    co_await layer.run_second(gpu);
    layer.finish(gpu);
}

}  // namespace tp_nvls

LayerResult run_tp_nvls(const TpJob& job) {
    if (job.input.machine.gpus() == 1) return run_tp_alone(job);
    const TpShape shape = tp_shape(job.input.model, job.input.part);
    if (shape.before == 0 || shape.after == 0) return run_sp_nvls(job);
    return run_tp(job, Homes::blockwise, tp_nvls::program);
}

}  // namespace moehub::systems
