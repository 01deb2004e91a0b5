// CoCoNet: two kernels at once. A GEMM whose row blocks come in the order in which a ring wants
// them, and a ring of NCCL's that waits for every chunk's flag, adds up, normalises its own rows
// and passes them around, all in one kernel (reduce-scatter, pointwise, all-gather). The next GEMM
// waits for all of it.
//
// Left open, and chosen: a chunk is a piece of rows; the ring's SMs move what a channel of NCCL's
// copies (collective.channel_copy), hand over at NCCL's latency of a hop, its flags included, and
// stay until the last row is gathered.
#include "layers/exchange.hpp"
#include "layers/tp/tp_moves.hpp"
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

#include <deque>

namespace moehub::systems {
namespace coconet {

struct Shared {
    explicit Shared(TpLayer& of)
        : layer(of), ring(of, [this](GpuId gpu, Bytes bytes) { return turn(gpu, bytes); }) {
        for (std::uint32_t gpu = 0; gpu < layer.gpus.count(); ++gpu)
            sms.emplace_back(layer.gpus.card(static_cast<GpuId>(gpu)),
                             layer.system.communication_sms);
    }
    Process turn(GpuId gpu, Bytes bytes) {
        const CollectiveCosts& costs = layer.input.machine.collective;
        co_await layer.gpus.endpoint(gpu).delay(costs.hop);
        co_await sms[gpu].begin(static_cast<double>(bytes), costs.channel_copy);
    }

    TpLayer& layer;
    TpRing ring;
    std::deque<MovingSms> sms;  ///< by GPU
};

Process first_gemm(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    const int sms = layer.gpus.card(gpu).gpu.sms - shared.sms[gpu].sms();
    co_await run_first_by_pieces(
        layer, gpu, {sms, piece_behind(layer, gpu)},
        [&shared, gpu](std::uint32_t piece) { shared.ring.made(gpu, piece); });
    layer.gpus.combine_began(gpu);
}

Process around_the_ring(Shared& shared, GpuId gpu, std::uint32_t piece) {
    TpLayer& layer = shared.layer;
    if (layer.has_first()) co_await shared.ring.reduce(gpu, piece);
    if (layer.home_here(gpu, piece)) {
        co_await shared.sms[gpu].pass(layer.norm_traffic(layer.pieces.rows(piece), 0));
        layer.share(gpu, piece, layer.has_first() ? TpLayer::Sum::in_partials : TpLayer::Sum::given,
                    true);
    }
    if (layer.has_second()) co_await shared.ring.gather(gpu, piece);
}

Process program(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    Several several(layer.gpus.endpoint(gpu));
    shared.sms[gpu].hold();
    several.spawn("first GEMM", first_gemm(shared, gpu));
    {
        const Communicating communicating(layer.gpus.card(gpu));
        co_await layer.gpus.endpoint(gpu).delay(layer.input.machine.collective.launch);
        for (const std::uint32_t piece : all_pieces(layer))
            several.spawn("piece of the ring", around_the_ring(shared, gpu, piece));
        co_await several.all();
        co_await shared.sms[gpu].all();
    }
    shared.sms[gpu].release();
    layer.gpus.combine_ended(gpu);
    co_await layer.run_second(gpu);
    layer.finish(gpu);
}

}  // namespace coconet

LayerResult run_coconet(const TpJob& job) {
    return run_tp_of_several(job, Homes::blockwise, coconet::program);
}

}  // namespace moehub::systems
