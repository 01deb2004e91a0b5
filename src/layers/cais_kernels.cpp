#include "layers/cais_kernels.hpp"

#include <numeric>

namespace moehub::layers {
namespace {

constexpr Bytes kFlag = 16;

}  // namespace

CaisKernels::CaisKernels(TpLayer& layer)
    : layer_(layer),
      coordinate_(layer.system.coordinate && layer.others() > 0),
      sums_(layer.gpus.add_counters("sums of a piece", layer.pieces.count())),
      made_(layer.gpus.add_counters("own partial sums of a piece", layer.pieces.count())),
      ready_(layer.gpus.add_counters("a normalised piece", layer.pieces.count())),
      shared_(layer.gpus.add_counter("own pieces that are normalised")),
      reductions_(add_window("acknowledged reductions")),
      loads_(add_window("loads that came")),
      answered_(layer.gpus.add_counters("a loaded piece", layer.pieces.count())),
      loaded_(layer.gpus.add_counter("pieces that the second GEMM has")) {
    const std::size_t most = std::max<std::size_t>(layer.pieces.count(), layer.rows());
    for (const For what : {For::launch, For::reduction, For::load})
        met_[static_cast<std::size_t>(what)] =
            layer.gpus.add_counters("thread blocks of all GPUs", what == For::launch ? most : layer.pieces.count());
    if (layer.others() == 0) return;
    const sim::SumsWatch watch{layer.piece_bytes(0), layer.others(), sums_};
    std::vector<GpuId> all(layer.gpus.count());
    std::iota(all.begin(), all.end(), GpuId{0});
    if (!layer.gpus.fabric.topology().mesh) everyone_ = layer.gpus.fabric.groups().add(all);
    for (const GpuId gpu : all) layer.gpus.hub(gpu).watch_sums(layer.totals, watch);
}

/// One empty packet to each switch, and one back from it when all have sent theirs.
Process CaisKernels::meet(GpuId gpu, For what, std::uint32_t number) {
    if (!coordinate_) co_return;
    const sim::Fabric& fabric = layer_.gpus.fabric;
    const Bytes switches = Bytes{fabric.topology().planes} * fabric.link().fold;
    const auto kind = static_cast<std::uint32_t>(what);
    sim::Transfer transfer;
    transfer.kind = sim::Kind::meet;
    transfer.dst = static_cast<GpuId>((gpu + 1) % layer_.gpus.count());
    transfer.bytes = switches * fabric.link().payload;
    transfer.address = ((std::uint64_t{number} << 2) + kind) * static_cast<std::uint64_t>(transfer.bytes);
    transfer.target.merge = static_cast<std::uint16_t>(layer_.gpus.count());
    transfer.answered = met_[kind] + number;
    layer_.gpus.endpoint(gpu).post(transfer);
    co_await layer_.gpus.endpoint(gpu).until(transfer.answered, 1);
}

CaisKernels::Window CaisKernels::add_window(const char* name) const {
    const std::size_t gpus = layer_.gpus.count();
    return {layer_.gpus.add_counters(name, gpus),
            std::vector<std::vector<std::int64_t>>(gpus, std::vector<std::int64_t>(gpus))};
}

/// Coordinated, loads and reductions each take half of the tables in front of a home; otherwise
/// what a GPU has outstanding is all that bounds them.
std::int64_t CaisKernels::parts_in_flight() const {
    const Machine& machine = layer_.input.machine;
    const std::int64_t tables = std::int64_t{machine.cais.merge_entries} *
                                (machine.switches - machine.switches_down);
    const std::int64_t lines = coordinate_ ? tables / 2 : machine.collective.outstanding_loads;
    const Bytes part = layer_.parts_of(0).front().count * layer_.row_bytes();
    return std::max<std::int64_t>(1, lines * machine.link.payload / part);
}

Process CaisKernels::enter(GpuId gpu, GpuId home, Window& window) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    std::int64_t& posted = window.posted[gpu][home];
    while (posted - endpoint.value(window.through + home) >= parts_in_flight()) {
        const std::int64_t enough = posted - parts_in_flight() + 1;
        co_await endpoint.until(window.through + home, enough);
    }
    ++posted;
}

Process CaisKernels::start_blocks(GpuId gpu, FirstGemm& gemm) {
    const std::int64_t ahead = gemm.blocks_at_once() + 1;  // so that the next has met in time
    for (std::uint32_t block = 0; block < gemm.overlaps().blocks(); ++block) {
        if (coordinate_) co_await gemm.ended(block - ahead + 1);
        co_await meet(gpu, For::launch, block);
        gemm.start(block);
    }
}

Process CaisKernels::reduce(GpuId gpu, std::uint32_t piece) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    if (layer_.home_here(gpu, piece)) {
        endpoint.increase(made_ + piece);
        if (layer_.others() > 0) co_await meet(gpu, For::reduction, piece);
        co_return;
    }
    co_await meet(gpu, For::reduction, piece);
    for (const TpLayer::Stretch& part : layer_.parts_of(piece)) {
        if (coordinate_)
            co_await enter(gpu, part.home, reductions_);
        else
            ++reductions_.posted[gpu][part.home];
        sim::Transfer transfer = layer_.reduction(part.home, part, layer_.totals);
        transfer.target.merge = static_cast<std::uint16_t>(layer_.others());
        transfer.from_sm = true;
        transfer.answered = reductions_.through + part.home;
        endpoint.post(transfer);
    }
}

sim::Endpoint::Until CaisKernels::summed(GpuId gpu, std::uint32_t piece) {
    const bool alone = layer_.others() == 0 || !layer_.has_first();
    return layer_.gpus.endpoint(gpu).until(sums_ + piece, alone ? 0 : 1);
}

sim::Endpoint::Until CaisKernels::own_made(GpuId gpu, std::uint32_t piece) {
    return layer_.gpus.endpoint(gpu).until(made_ + piece, layer_.has_first() ? 1 : 0);
}

Process CaisKernels::all_acknowledged(GpuId gpu) {
    for (std::uint32_t home = 0; home < layer_.gpus.count(); ++home) {
        const std::int64_t all = reductions_.posted[gpu][home];
        co_await layer_.gpus.endpoint(gpu).until(reductions_.through + home, all);
    }
}

sim::Endpoint::Until CaisKernels::all_shared(GpuId gpu, std::int64_t pieces) {
    return layer_.gpus.endpoint(gpu).until(shared_, pieces);
}

Process CaisKernels::norm(GpuId gpu, std::uint32_t piece) {
    co_await summed(gpu, piece);
    co_await own_made(gpu, piece);
    const int addends = layer_.has_first() && layer_.others() > 0 ? 1 : 0;
    const Traffic traffic = layer_.norm_traffic(layer_.pieces.rows(piece), addends);
    co_await run_stream_blocks(layer_.gpus.card(gpu), traffic, sim::Priority::high);
    normalised(gpu, piece);
}

void CaisKernels::normalised(GpuId gpu, std::uint32_t piece) {
    const bool alone = layer_.others() == 0;
    layer_.share(gpu, piece,
                 !layer_.has_first() ? TpLayer::Sum::given
                 : alone             ? TpLayer::Sum::in_partials
                                     : TpLayer::Sum::others_in_totals,
                 true);
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    endpoint.increase(shared_);
    if (coordinate_ || alone || !layer_.has_second() || !layer_.system.fuse_blocks)
        return endpoint.increase(ready_ + piece);
    sim::Transfer flag;
    flag.group = everyone_;
    flag.bytes = kFlag;
    flag.address = std::uint64_t{piece} * static_cast<std::uint64_t>(layer_.gpus.fabric.link().payload);
    flag.from_sm = true;
    flag.arrived = ready_ + piece;
    endpoint.post(flag);
}

Process CaisKernels::load(GpuId gpu, std::uint32_t piece, SecondGemm& gemm) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const bool home = layer_.home_here(gpu, piece);
    // Of kernels one by one all pieces are ready when the second starts; others' homes say so here.
    const bool told = !coordinate_ && layer_.system.fuse_blocks;
    if (home || told) co_await endpoint.until(ready_ + piece, 1);
    co_await meet(gpu, For::load, piece);
    if (!home) co_await load_parts(gpu, piece);
    gemm.came(piece);
    endpoint.increase(loaded_);
}

Process CaisKernels::load_parts(GpuId gpu, std::uint32_t piece) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const std::vector<TpLayer::Stretch> parts = layer_.parts_of(piece);
    for (const TpLayer::Stretch& part : parts) {
        co_await enter(gpu, part.home, loads_);
        sim::Transfer transfer = layer_.load(part);
        transfer.target.merge = static_cast<std::uint16_t>(layer_.others());
        transfer.arrived = answered_ + piece;
        transfer.answered = loads_.through + part.home;
        endpoint.post(transfer);
    }
    co_await endpoint.until(answered_ + piece, static_cast<std::int64_t>(parts.size()));
}

Process CaisKernels::load_all(GpuId gpu, SecondGemm& gemm) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    for (std::uint32_t piece = 0; piece < layer_.pieces.count(); ++piece) {
        co_await endpoint.until(loaded_, piece - pieces_at_once() + 1);
        endpoint.spawn("load of a piece", load(gpu, piece, gemm));
    }
    co_await endpoint.until(loaded_, layer_.pieces.count());
}

}  // namespace moehub::layers
