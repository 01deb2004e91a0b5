// Megatron's sequence parallelism through the switch: a GEMM, a reduce-scatter by in-switch loads,
// a norm of one's own rows, an all-gather by multicast, a GEMM, one after the other.
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace sp_nvls {

struct Shared {
    TpLayer& layer;
    sim::Communicator all{layer.gpus.fabric, "an in-switch collective"};
};

Process program(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    const sim::Slice own = own_rows(layer, gpu);
    co_await layer.run_first(gpu);
    layer.gpus.combine_began(gpu);
    if (layer.has_first()) {
        const sim::Launched launched(layer.gpus.card(gpu), KernelName::reduce);
        co_await reduce_slice(shared.all, gpu, own_sums(layer, gpu));
    }
    layer.gpus.combine_ended(gpu);
    co_await run_stream(layer.gpus.card(gpu), layer.norm_traffic(own.bytes / layer.row_bytes(), 0),
                        KernelName::norm);
    share_own(layer, gpu, layer.has_first() ? TpLayer::Sum::all_in_totals : TpLayer::Sum::given,
              true);
    layer.gpus.dispatch_began(gpu);
    if (layer.has_second()) {
        const sim::Launched launched(layer.gpus.card(gpu), KernelName::gather);
        co_await multicast_slice(shared.all, gpu, own_outputs(layer, gpu, layer.shared));
    }
    layer.gpus.dispatch_ended(gpu);
    co_await layer.run_second(gpu);
    layer.finish(gpu);
}

}  // namespace sp_nvls

LayerResult run_sp_nvls(const TpJob& job) {
    return run_tp_of_several(job, Homes::blockwise, sp_nvls::program);
}

}  // namespace moehub::systems
