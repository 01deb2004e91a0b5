// T3: the GEMM is as it was, its row blocks staggered over GPUs. A tracker at the memory controller
// sees when a piece's local and incoming updates are complete, and starts a DMA that the program
// has prepared to the next GPU of a ring, where memory adds up by itself: no SM communicates. The
// norm is a kernel of its own. The CAIS paper extended T3 to the GEMM behind an all-gather: a ring
// of DMAs again, and row blocks that start as their rows come, own ones first.
//
// Left open, and chosen: a DMA starts kStart after the last update, and its hub's latency comes on
// top; the first piece is a DMA, too, where T3 stores it remotely tile by tile; communication comes
// before kernels in HBM, as everywhere here, and T3's arbitration (MCA) is not modelled.
#include "layers/exchange.hpp"
#include "layers/tp/tp_moves.hpp"
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace t3 {

constexpr Ps kStart = 200 * kNs;  ///< from the tracker to the DMA's first read

struct Shared {
    Process start(GpuId gpu) { co_await layer.gpus.endpoint(gpu).delay(kStart); }

    TpLayer& layer;
    TpRing ring{layer, [this](GpuId gpu, Bytes) { return start(gpu); }};
};

/// Ends when the GPU's own rows are summed, and what others sum has been passed on.
Process reduce(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    if (!layer.has_first()) co_return;
    Several pieces(layer.gpus.endpoint(gpu));
    for (const std::uint32_t piece : all_pieces(layer))
        pieces.spawn("piece of the ring", shared.ring.reduce(gpu, piece));
    co_await run_first_by_pieces(
        layer, gpu, {layer.gpus.card(gpu).gpu.sms, piece_behind(layer, gpu)},
        [&shared, gpu](std::uint32_t piece) { shared.ring.made(gpu, piece); });
    layer.gpus.combine_began(gpu);
    {
        const Communicating communicating(layer.gpus.card(gpu));
        co_await pieces.all();
    }
    layer.gpus.combine_ended(gpu);
}

Process start_when_gathered(Shared& shared, SecondGemm& gemm, GpuId gpu, std::uint32_t piece) {
    co_await shared.ring.gathered(gpu, piece);
    gemm.came(piece);
}

Process gather(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    if (!layer.has_second()) co_return;
    const Communicating communicating(layer.gpus.card(gpu));
    layer.gpus.dispatch_began(gpu);
    Several pieces(layer.gpus.endpoint(gpu));
    for (const std::uint32_t piece : all_pieces(layer))
        pieces.spawn("piece of the ring", shared.ring.gather(gpu, piece));
    SecondGemm gemm(layer, gpu, layer.gpus.card(gpu).gpu.sms);
    co_await gemm.launch();
    Several blocks(layer.gpus.endpoint(gpu));
    for (const std::uint32_t piece : all_pieces(layer)) {
        if (layer.home_here(gpu, piece)) {
            gemm.came(piece);
        } else {
            blocks.spawn("rows for the second GEMM", start_when_gathered(shared, gemm, gpu, piece));
        }
    }
    co_await blocks.all();
    layer.gpus.dispatch_ended(gpu);
    co_await gemm.finish();
    co_await pieces.all();
}

Process program(Shared& shared, GpuId gpu) {
    co_await reduce(shared, gpu);
    co_await run_norm(shared.layer, gpu, TpLayer::Sum::in_partials);
    co_await gather(shared, gpu);
    shared.layer.finish(gpu);
}

}  // namespace t3

LayerResult run_t3(const TpJob& job) {
    return run_tp_of_several(job, Homes::blockwise, t3::program);
}

}  // namespace moehub::systems
