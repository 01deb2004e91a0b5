// LADM: pages and thread blocks are placed so that most accesses stay on their GPU; the others are
// ordinary loads over the link, and no collective. Weights stay as tensor parallelism cuts them.
// The second GEMM's tiles load the rows that are not here. LADM caches remote lines where they live
// and not where they are read, unless a thread reads them again itself, so that every column of
// tiles loads its rows once more.
//
// Left open, and chosen: how partial sums are combined. A row's home loads everybody's and adds
// them up in the kernel that normalises. Kernels end with a barrier of flags. An SM keeps
// `load_window` of loads in flight. A GPU's tiles begin with its own rows and go on from there, so
// that not all GPUs load from one. A tile's loads fill memory's bandwidth at both ends as others
// do, though the home's L2 would answer most.
#include "layers/exchange.hpp"
#include "layers/tp/tp_moves.hpp"
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

#include <deque>

namespace moehub::systems {
namespace ladm {

struct Shared {
    explicit Shared(TpLayer& of)
        : layer(of),
          ended(of, "GPUs whose kernel has ended", 2),
          summed(of.gpus.add_counters("partial sums of a piece", of.pieces.count())),
          read(of.gpus.add_counters("loads of a piece's rows", of.pieces.count())) {
        for (std::uint32_t i = 0; i < layer.gpus.count(); ++i) {
            const auto gpu = static_cast<GpuId>(i);
            loads.emplace_back(layer, gpu, layer.gpus.card(gpu).gpu.sms * layer.system.load_window);
        }
    }
    TpLayer& layer;
    TpFlags ended;                 ///< the first GEMM; the norm
    sim::CounterId summed;         ///< by piece: parts
    sim::CounterId read;           ///< by piece: parts
    std::deque<PieceLoads> loads;  ///< by GPU
};

Process barrier(Shared& shared, GpuId gpu, std::uint32_t kernel) {
    shared.ended.raise_at_others(gpu, kernel);
    co_await shared.ended.until(gpu, shared.layer.others(), kernel);
}

Process norm_when_loaded(Shared& shared, GpuId gpu, std::uint32_t piece) {
    TpLayer& layer = shared.layer;
    const std::int64_t parts = shared.loads[gpu].parts(layer.piece_bytes(piece));
    co_await layer.gpus.endpoint(gpu).until(shared.summed + piece, layer.others() * parts);
    co_await run_stream_blocks(layer.gpus.card(gpu),
                               layer.norm_traffic(layer.pieces.rows(piece), 0), KernelName::norm,
                               sim::Priority::high);
    layer.share(gpu, piece, TpLayer::Sum::others_in_totals, true);
}

/// One kernel: partial sums come over the link, its own from memory.
Process add_up(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    sim::Card& card = layer.gpus.card(gpu);
    const Communicating communicating(card);
    layer.gpus.combine_began(gpu);
    co_await run_for(card, plan_stream(card.gpu, layer.norm_traffic(1, 0)).start, KernelName::norm);
    Several pieces(card.endpoint);
    for (const std::uint32_t piece : own_pieces(layer, gpu)) {
        pieces.spawn("piece at its home", norm_when_loaded(shared, gpu, piece));
        for (std::uint32_t i = 1; i < layer.gpus.count(); ++i) {
            sim::Transfer sums = layer.load(piece);
            sums.dst = static_cast<GpuId>((gpu + i) % layer.gpus.count());
            sums.target.region = layer.partials;
            sums.target.into = layer.totals;
            sums.arrived = shared.summed + piece;
            co_await shared.loads[gpu].load(sums);
        }
    }
    co_await pieces.all();
    layer.gpus.combine_ended(gpu);
}

Process start_when_read(Shared& shared, SecondGemm& gemm, GpuId gpu, std::uint32_t piece) {
    const Bytes bytes = shared.layer.piece_bytes(piece);
    co_await shared.layer.gpus.endpoint(gpu).until(
        shared.read + piece, gemm.plan().tiles_across * shared.loads[gpu].parts(bytes));
    gemm.came(piece);
}

/// The books follow the rows that the first column of tiles loads.
Process load_for_columns(Shared& shared, GpuId gpu, std::uint32_t piece, std::int64_t columns) {
    sim::Transfer rows = shared.layer.load(piece);
    rows.arrived = shared.read + piece;
    for (std::int64_t column = 0; column < columns; ++column) {
        co_await shared.loads[gpu].load(rows);
        rows.target.region = sim::kNoRegion;
        rows.target.into = sim::kNoRegion;
    }
}

Process run_second(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    sim::Card& card = layer.gpus.card(gpu);
    const Communicating communicating(card);
    layer.gpus.dispatch_began(gpu);
    SecondGemm gemm(layer, gpu, card.gpu.sms);
    co_await gemm.launch();
    Several pieces(card.endpoint);
    for (const std::uint32_t piece : own_pieces(layer, gpu)) gemm.came(piece);
    const std::uint32_t first = piece_behind(layer, gpu);
    for (std::uint32_t i = 0; i < layer.pieces.count(); ++i) {
        const std::uint32_t piece = (first + i) % layer.pieces.count();
        if (layer.home_here(gpu, piece)) continue;
        pieces.spawn("rows for the second GEMM", start_when_read(shared, gemm, gpu, piece));
        co_await load_for_columns(shared, gpu, piece, gemm.plan().tiles_across);
    }
    co_await pieces.all();
    layer.gpus.dispatch_ended(gpu);
    co_await gemm.finish();
}

Process program(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    co_await layer.run_first(gpu);
    if (layer.has_first()) {
        co_await barrier(shared, gpu, 0);
        co_await add_up(shared, gpu);
    } else {
        co_await run_norm(layer, gpu, TpLayer::Sum::given);
    }
    if (layer.has_second()) {
        co_await barrier(shared, gpu, 1);
        co_await run_second(shared, gpu);
    }
    layer.finish(gpu);
}

}  // namespace ladm

LayerResult run_ladm(const TpJob& job) {
    return run_tp_of_several(job, Homes::blockwise, ladm::program);
}

}  // namespace moehub::systems
