// FuseLib: one persistent kernel. Its work-groups store every piece of partial sums straight to the
// piece's home and raise a flag there, pieces of other homes first; a home that has all flags of a
// piece adds it up, normalises it, and stores it to every other GPU, with a flag again. The next
// GEMM waits for all of it.
//
// Left open, and chosen: the occupancy that the fused kernel loses, an eighth, is so many SMs
// (or `communication_sms`), at whose rate homes store their rows; adding up and the norm are done
// between tiles by the work-groups of the others. A flag follows when rows are acknowledged, as a
// fence has it. Memory adds up what arrives and is charged for it, where FuseLib writes it to a
// place of its own; homes read all of it in any case.
#include "layers/exchange.hpp"
#include "layers/tp/tp_moves.hpp"
#include "layers/tp/tp_pieces.hpp"
#include "systems/systems.hpp"

#include <deque>

namespace moehub::systems {
namespace fuselib {

struct Shared {
    explicit Shared(TpLayer& of)
        : layer(of),
          made(of.gpus.add_counters("partial sums of a piece", of.pieces.count())),
          stored(of.gpus.add_counters("acknowledged rows of a piece", of.pieces.count())),
          summed(of, "partial sums at a piece's home", of.pieces.count()),
          gathered(of, "pieces from their homes", 1) {
        for (std::uint32_t gpu = 0; gpu < layer.gpus.count(); ++gpu)
            sms.emplace_back(layer.gpus.card(static_cast<GpuId>(gpu)), lost_sms(layer));
    }
    TpLayer& layer;
    sim::CounterId made;    ///< by piece
    sim::CounterId stored;  ///< by piece
    TpFlags summed;         ///< by piece, at its home
    TpFlags gathered;
    std::deque<MovingSms> sms;  ///< by GPU
};

Process send_home(Shared& shared, GpuId gpu, std::uint32_t piece) {
    TpLayer& layer = shared.layer;
    sim::Endpoint& endpoint = layer.gpus.endpoint(gpu);
    const GpuId home = layer.pieces.home(piece);
    co_await endpoint.until(shared.made + piece, 1);
    sim::Transfer sums = layer.reduction(home, piece, layer.totals);
    sums.from_sm = true;
    sums.answered = shared.stored + piece;
    endpoint.post(sums);
    co_await endpoint.until(shared.stored + piece, 1);
    shared.summed.raise(gpu, home, piece);
}

Process send_to_all(Shared& shared, GpuId gpu, std::uint32_t piece) {
    TpLayer& layer = shared.layer;
    sim::Endpoint& endpoint = layer.gpus.endpoint(gpu);
    co_await shared.sms[gpu].begin(static_cast<double>(layer.others() * layer.piece_bytes(piece)),
                                   layer.input.machine.gpu.kernels.row_store);
    for (std::uint32_t i = 1; i < layer.gpus.count(); ++i) {
        sim::Transfer rows = layer.store(static_cast<GpuId>((gpu + i) % layer.gpus.count()), piece);
        rows.from_sm = true;
        rows.answered = shared.stored + piece;
        endpoint.post(rows);
    }
    co_await endpoint.until(shared.stored + piece, layer.others());
    shared.gathered.raise_at_others(gpu);
}

Process at_home(Shared& shared, GpuId gpu, std::uint32_t piece) {
    TpLayer& layer = shared.layer;
    // What comes is read and written where it comes; the home then reads its own beside the sum.
    const int addends = layer.has_first() ? 1 : 0;
    if (layer.has_first()) {
        co_await layer.gpus.endpoint(gpu).until(shared.made + piece, 1);
        co_await shared.summed.until(gpu, layer.others(), piece);
    }
    co_await run_stream_blocks(layer.gpus.card(gpu),
                               layer.norm_traffic(layer.pieces.rows(piece), addends),
                               KernelName::norm, sim::Priority::high);
    layer.share(gpu, piece,
                layer.has_first() ? TpLayer::Sum::others_in_totals : TpLayer::Sum::given, true);
    if (layer.has_second()) co_await send_to_all(shared, gpu, piece);
}

Process first_gemm(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    const int sms = layer.gpus.card(gpu).gpu.sms - shared.sms[gpu].sms();
    co_await run_first_by_pieces(layer, gpu, {sms, piece_behind(layer, gpu)},
                                 [&shared, gpu](std::uint32_t piece) {
                                     shared.layer.gpus.endpoint(gpu).increase(shared.made + piece);
                                 });
    layer.gpus.combine_began(gpu);
}

Process fused_kernel(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    const Communicating communicating(layer.gpus.card(gpu));
    Several several(layer.gpus.endpoint(gpu));
    shared.sms[gpu].hold();
    several.spawn("first GEMM", first_gemm(shared, gpu));
    std::uint32_t elsewhere = 0;  // pieces
    for (const std::uint32_t piece : all_pieces(layer)) {
        if (layer.home_here(gpu, piece)) {
            several.spawn("piece at its home", at_home(shared, gpu, piece));
            continue;
        }
        ++elsewhere;
        if (layer.has_first()) several.spawn("piece to its home", send_home(shared, gpu, piece));
    }
    co_await several.all();
    co_await shared.sms[gpu].all();
    if (layer.has_second()) co_await shared.gathered.until(gpu, elsewhere);
    shared.sms[gpu].release();
}

Process program(Shared& shared, GpuId gpu) {
    TpLayer& layer = shared.layer;
    co_await fused_kernel(shared, gpu);
    layer.gpus.combine_ended(gpu);
    co_await layer.run_second(gpu);
    layer.finish(gpu);
}

}  // namespace fuselib

LayerResult run_fuselib(const TpJob& job) {
    return run_tp_of_several(job, Homes::blockwise, fuselib::program);
}

}  // namespace moehub::systems
