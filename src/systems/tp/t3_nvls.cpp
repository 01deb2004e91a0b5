// T3 with in-switch collectives by DMA (Klenk et al.): as pieces of partial sums are made, DMAs
// push them to their homes, and switches merge what all GPUs push. No SM communicates; all GPUs
// make pieces in the same order, so that they meet. The norm is a kernel of its own; then DMAs
// store a GPU's own rows to all by multicast, and the second GEMM's row blocks start as rows come,
// own ones first, as the CAIS paper extended T3.
//
// Left open, and chosen: a DMA starts kStart after its tracker. It pushes waves of 8 KiB, 16 of
// them to a home in flight (Klenk), which is less than a port's merge units hold: a GPU that is
// ahead waits for the others. What waits longer than an entry may goes home as a partial sum.
#include "layers/exchange.hpp"
#include "layers/tp/tp_moves.hpp"
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

#include <numeric>

namespace moehub::systems {
namespace t3_nvls {

constexpr Ps kStart = 200 * kNs;  ///< from the tracker to the DMA's first read
constexpr Bytes kWave = 8192;
constexpr std::int64_t kWaves = 16;

struct Shared {
    explicit Shared(TpLayer& of)
        : layer(of),
          made(of.gpus.add_counters("partial sums of a piece", of.pieces.count())),
          pushed(of.gpus.add_counters("waves to a home", of.gpus.count())),
          summed(of.gpus.add_counters("sums at their home", of.pieces.count())),
          gathered(of.gpus.add_counters("a piece from its home", of.pieces.count())) {
        std::vector<GpuId> gpus(layer.gpus.count());
        std::iota(gpus.begin(), gpus.end(), GpuId{0});
        all = layer.gpus.fabric.groups().add(gpus);
        for (const GpuId gpu : gpus)
            layer.gpus.hub(gpu).watch_sums(layer.totals,
                                           {layer.piece_bytes(0), layer.others(), summed});
    }
    TpLayer& layer;
    sim::CounterId made;      ///< by piece
    sim::CounterId pushed;    ///< by home: waves that are merged
    sim::CounterId summed;    ///< by piece
    sim::CounterId gathered;  ///< by piece
    sim::GroupId all = 0;
};

/// One DMA for each home, its pieces one after the other.
Process push(Shared& shared, GpuId gpu, GpuId home) {
    TpLayer& layer = shared.layer;
    sim::Endpoint& endpoint = layer.gpus.endpoint(gpu);
    std::int64_t posted = 0;
    for (const std::uint32_t piece : own_pieces(layer, home)) {
        co_await endpoint.until(shared.made + piece, 1);
        co_await endpoint.delay(kStart);
        sim::Transfer sums = layer.reduction(home, piece, layer.totals);
        sums.target.merge = static_cast<std::uint16_t>(layer.others());
        sums.answered = shared.pushed + home;
        for (Bytes offset = 0; offset < sums.bytes; offset += kWave) {
            co_await endpoint.until(shared.pushed + home, ++posted - kWaves);
            endpoint.post(part_of(sums, offset, kWave));
        }
    }
    co_await endpoint.until(shared.pushed + home, posted);
}

Process reduce(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    if (!layer.has_first()) co_return;
    sim::Endpoint& endpoint = layer.gpus.endpoint(gpu);
    Several homes(endpoint);
    for (std::uint32_t i = 0; i < layer.gpus.count(); ++i)
        if (i != gpu) homes.spawn("DMA to a home", push(shared, gpu, static_cast<GpuId>(i)));
    co_await run_first_by_pieces(
        layer, gpu, {layer.gpus.card(gpu).gpu.sms, 0},
        [&](std::uint32_t piece) { endpoint.increase(shared.made + piece); });
    layer.gpus.combine_began(gpu);
    {
        const Communicating communicating(layer.gpus.card(gpu));
        co_await homes.all();
        for (const std::uint32_t piece : own_pieces(layer, gpu))
            co_await endpoint.until(shared.summed + piece, 1);
    }
    layer.gpus.combine_ended(gpu);
}

Process start_when_gathered(Shared& shared, SecondGemm& gemm, GpuId gpu, std::uint32_t piece) {
    co_await shared.layer.gpus.endpoint(gpu).until(shared.gathered + piece, 1);
    gemm.came(piece);
}

Process send_to_all(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    co_await layer.gpus.endpoint(gpu).delay(kStart);
    for (const std::uint32_t piece : own_pieces(layer, gpu)) {
        sim::Transfer rows = layer.store(gpu, piece);
        rows.group = shared.all;
        rows.arrived = shared.gathered + piece;
        layer.gpus.endpoint(gpu).post(rows);
    }
}

Process gather(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    if (!layer.has_second()) co_return;
    const Communicating communicating(layer.gpus.card(gpu));
    layer.gpus.dispatch_began(gpu);
    Several several(layer.gpus.endpoint(gpu));
    several.spawn("DMA to all", send_to_all(shared, gpu));
    SecondGemm gemm(layer, gpu, layer.gpus.card(gpu).gpu.sms);
    co_await gemm.launch();
    for (const std::uint32_t piece : all_pieces(layer)) {
        if (layer.home_here(gpu, piece)) {
            gemm.came(piece);
        } else {
            several.spawn("rows for the second GEMM",
                          start_when_gathered(shared, gemm, gpu, piece));
        }
    }
    co_await several.all();
    layer.gpus.dispatch_ended(gpu);
    co_await gemm.finish();
}

Process program(Shared& shared, GpuId gpu) {
    co_await reduce(shared, gpu);
    co_await run_norm(shared.layer, gpu, TpLayer::Sum::others_in_totals);
    co_await gather(shared, gpu);
    shared.layer.finish(gpu);
}

}  // namespace t3_nvls

LayerResult run_t3_nvls(const TpJob& job) {
    return run_tp_of_several(job, Homes::in_turn, t3_nvls::program);
}

}  // namespace moehub::systems
