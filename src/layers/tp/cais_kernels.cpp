#include "layers/tp/cais_kernels.hpp"

#include <numeric>

namespace moehub::layers {
namespace {

constexpr Bytes kFlag = 16;
constexpr Bytes kPart = 16384;   ///< at most, unless a row is longer
constexpr int kPartsAtOnce = 5;  ///< at least as many fit, unless rows are too long

/// Bytes that a GPU has in flight to a home: its share of what SMs keep in flight. Coordinated,
/// loads and reductions each take no more than half of the tables in front of it, and than keeps
/// the GPU's links busy over a round trip.
Bytes in_flight(const TpLayer& layer, bool coordinate) {
    const Machine& machine = layer.input.machine;
    const Bytes outstanding =
        layer.system.load_window * machine.gpu.sms / std::max(1u, layer.others());
    if (!coordinate) return outstanding;
    const Ps trip = machine.hub.store_latency + machine.hub.read_latency + 4 * machine.link.latency;
    const double busy = machine.link.bandwidth * to_seconds(trip) / layer.others();
    const Bytes tables = Bytes{machine.cais.merge_entries} * machine.link.payload *
                         (machine.switches - machine.switches_down);
    return std::min({outstanding, tables / 2, static_cast<Bytes>(busy)});
}

std::uint32_t part_rows(const TpLayer& layer, bool coordinate) {
    const Bytes part = std::min(kPart, in_flight(layer, coordinate) / kPartsAtOnce);
    return static_cast<std::uint32_t>(std::max<Bytes>(1, part / layer.row_bytes()));
}

}  // namespace

CaisKernels::CaisKernels(TpLayer& layer)
    : layer_(layer),
      coordinate_(layer.system.coordinate && layer.others() > 0),
      part_rows_(part_rows(layer, coordinate_)),
      parts_in_flight_(std::max<std::int64_t>(
          1, in_flight(layer, coordinate_) / (part_rows_ * layer.row_bytes()))),
      sums_(layer.gpus.add_counters("sums of a piece", layer.pieces.count())),
      made_(layer.gpus.add_counters("own partial sums of a piece", layer.pieces.count())),
      ready_(layer.gpus.add_counters("a normalised piece", layer.pieces.count())),
      shared_(layer.gpus.add_counter("own pieces that are normalised")),
      windows_{add_window("acknowledged reductions"), add_window("loads that came")},
      answered_(layer.gpus.add_counters("a loaded piece", layer.pieces.count())),
      loaded_(layer.gpus.add_counter("pieces that the second GEMM has")) {
    const std::size_t pieces = layer.pieces.count();
    const std::size_t sizes[] = {layer.rows(), pieces, pieces};
    for (std::size_t i = 0; i < 3; ++i)
        met_[i] = layer.gpus.add_counters("thread blocks of all GPUs", sizes[i]);
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
    transfer.address =
        ((std::uint64_t{number} << 2) + kind) * static_cast<std::uint64_t>(transfer.bytes);
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

Process CaisKernels::enter(GpuId gpu, GpuId home, Of what) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const sim::CounterId through = window(what).through + home;
    std::int64_t& posted = window(what).posted[gpu][home];
    while (posted - endpoint.value(through) >= parts_in_flight_) {
        const std::int64_t enough = posted - parts_in_flight_ + 1;
        co_await endpoint.until(through, enough);
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
    for (const TpLayer::Stretch& part : layer_.parts_of(piece, part_rows_)) {
        if (coordinate_)
            co_await enter(gpu, part.home, Of::reductions);
        else
            ++window(Of::reductions).posted[gpu][part.home];
        sim::Transfer transfer = layer_.reduction(part.home, part, layer_.totals);
        transfer.target.merge = static_cast<std::uint16_t>(layer_.others());
        transfer.from_sm = true;
        transfer.answered = window(Of::reductions).through + part.home;
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
        const std::int64_t all = window(Of::reductions).posted[gpu][home];
        co_await layer_.gpus.endpoint(gpu).until(window(Of::reductions).through + home, all);
    }
}

sim::Endpoint::Until CaisKernels::all_shared(GpuId gpu, std::int64_t pieces) {
    return layer_.gpus.endpoint(gpu).until(shared_, pieces);
}

Process CaisKernels::norm(GpuId gpu, std::uint32_t piece) {
    co_await summed(gpu, piece);
    co_await own_made(gpu, piece);
    // Blocks that wait ask the hub's count of what has come: there and back.
    co_await layer_.gpus.endpoint(gpu).delay(2 * layer_.input.machine.hub.store_latency);
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
    flag.address =
        std::uint64_t{piece} * static_cast<std::uint64_t>(layer_.gpus.fabric.link().payload);
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
    const std::vector<TpLayer::Stretch> parts = layer_.parts_of(piece, part_rows_);
    for (const TpLayer::Stretch& part : parts) {
        co_await enter(gpu, part.home, Of::loads);
        sim::Transfer transfer = layer_.load(part);
        transfer.target.merge = static_cast<std::uint16_t>(layer_.others());
        transfer.arrived = answered_ + piece;
        transfer.answered = window(Of::loads).through + part.home;
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
