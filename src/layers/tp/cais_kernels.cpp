#include "layers/tp/cais_kernels.hpp"

#include "layers/tp/tp_moves.hpp"

namespace moehub::layers {
namespace {

constexpr Bytes kPart = 16384;   ///< most bytes of one request
constexpr Bytes kBlock = 16384;  ///< least bytes that are requested together

/// In whole lines for every switch.
Bytes whole_lines(const Machine& machine, Bytes bytes) {
    const Bytes lines = machine.link.payload * (machine.switches - machine.switches_down);
    return std::max<Bytes>(1, (bytes + lines - 1) / lines) * lines;
}

/// A third of the tables in front of a home: GPUs that meet before each block are seldom a whole
/// block apart; no more than keeps the GPU's link busy while a block of every home is met for and
/// comes. Where tables are tiny blocks overflow them: better than to wait for one another after
/// every few lines.
Bytes block_bytes(const Machine& machine, std::uint32_t others) {
    const HubSpec& hub = machine.hub;
    const Ps trip = 2 * hub.store_latency + hub.read_latency + 6 * machine.link.latency;
    const double busy = machine.link.bandwidth * to_seconds(trip) / std::max(1u, others);
    const Bytes tables = Bytes{machine.cais.merge_entries} * machine.link.payload *
                         (machine.switches - machine.switches_down);
    return std::max(kBlock, std::min(tables / 3, static_cast<Bytes>(busy)));
}

}  // namespace

CaisKernels::CaisKernels(TpLayer& layer)
    : layer_(layer),
      coordinate_(layer.system.coordinate && layer.others() > 0),
      sums_(layer.gpus.add_counters("sums of a piece", layer.pieces.count())),
      made_(layer.gpus.add_counters("own partial sums of a piece", layer.pieces.count())),
      ready_(layer.gpus.add_counters("a normalised piece", layer.pieces.count())),
      shared_(layer.gpus.add_counter("own pieces that are normalised")),
      windows_{add_window("acknowledged reductions"), add_window("loads that came")},
      answered_(layer.gpus.add_counters("a loaded piece", layer.pieces.count())),
      loaded_(layer.gpus.add_counter("pieces that the second GEMM has")) {
    const Machine& machine = layer.input.machine;
    const Bytes block = block_bytes(machine, layer.others());
    parts_of_block_ = static_cast<std::uint32_t>((block - 1) / kPart + 1);
    part_bytes_ = whole_lines(machine, block / parts_of_block_);
    const std::size_t parts = layer.parts_of(0, part_bytes_).size();
    blocks_of_piece_ = static_cast<std::uint32_t>((parts - 1) / parts_of_block_ + 1);
    parts_in_flight_ = std::max<Bytes>(
        1, layer.system.load_window * machine.gpu.sms / std::max(1u, layer.others()) / part_bytes_);
    const std::size_t blocks = std::size_t{layer.pieces.count()} * blocks_of_piece_;
    for (const For what : {For::launch, For::reduction, For::load})
        met_[static_cast<std::size_t>(what)] = layer.gpus.add_counters(
            "thread blocks of all GPUs", what == For::launch ? layer.rows() : blocks);
    if (layer.others() == 0) return;
    const std::vector<GpuId> all = layer.gpus.all();
    everyone_ = layer.gpus.fabric.groups().add(all);
    for (const GpuId gpu : all)
        layer.gpus.hub(gpu).watch_sums(layer.totals, {layer.piece_bytes(0), layer.others(), sums_});
}

CaisKernels::Window CaisKernels::add_window(const char* name) const {
    const std::size_t gpus = layer_.gpus.count();
    return {layer_.gpus.add_counters(name, gpus),
            layer_.gpus.add_counters("a home's pieces before", gpus),
            std::vector<std::vector<std::int64_t>>(gpus, std::vector<std::int64_t>(gpus))};
}

/// One empty packet to each switch, and one back from it when all have sent theirs.
void CaisKernels::come(GpuId gpu, For what, std::uint32_t number, std::uint32_t gpus) {
    if (!coordinate_) return;
    const sim::Fabric& fabric = layer_.gpus.fabric;
    const Bytes switches = Bytes{fabric.topology().planes} * fabric.link().fold;
    const auto kind = static_cast<std::uint32_t>(what);
    sim::Transfer transfer;
    transfer.kind = sim::EventKind::meet;
    transfer.bytes = switches * fabric.link().payload;
    transfer.address =
        ((std::uint64_t{number} << 2) + kind) * static_cast<std::uint64_t>(transfer.bytes);
    transfer.target.merge = static_cast<std::uint16_t>(gpus);
    transfer.answered = met_[kind] + number;
    layer_.gpus.endpoint(gpu).post(transfer);
}

sim::Endpoint::Until CaisKernels::met(GpuId gpu, For what, std::uint32_t number) {
    return layer_.gpus.endpoint(gpu).until(met_[static_cast<std::size_t>(what)] + number,
                                           coordinate_ ? 1 : 0);
}

/// As many ahead as fill the card, and one more, so that it has met in time.
Process CaisKernels::come_for_row_blocks(GpuId gpu, FirstGemm& gemm) {
    const std::int64_t ahead = gemm.blocks_at_once() + 1;
    for (std::uint32_t block = 0; block < gemm.overlaps().blocks(); ++block) {
        co_await gemm.ended(block - ahead + 1);
        come(gpu, For::launch, block, layer_.gpus.count());
    }
}

Process CaisKernels::start_blocks(GpuId gpu, FirstGemm& gemm) {
    if (coordinate_)
        layer_.gpus.endpoint(gpu).spawn("meetings of row blocks", come_for_row_blocks(gpu, gemm));
    for (std::uint32_t block = 0; block < gemm.overlaps().blocks(); ++block) {
        co_await met(gpu, For::launch, block);
        gemm.start(block);
    }
}

Process CaisKernels::enter(GpuId gpu, GpuId home, For what) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const sim::CounterId through = window(what).through + home;
    std::int64_t& posted = window(what).posted[gpu][home];
    while (!coordinate_ && posted - endpoint.value(through) >= parts_in_flight_) {
        const std::int64_t enough = posted - parts_in_flight_ + 1;
        co_await endpoint.until(through, enough);
    }
    ++posted;
}

sim::Transfer CaisKernels::request(std::uint32_t piece, const TpLayer::Stretch& part,
                                   For what) const {
    sim::Transfer transfer =
        what == For::load ? layer_.load(part) : layer_.reduction(part.home, part, layer_.totals);
    transfer.target.merge = static_cast<std::uint16_t>(layer_.others());
    transfer.answered = window(what).through + part.home;
    if (what == For::load) transfer.arrived = answered_ + piece;
    return transfer;
}

/// Pieces of one home in their order, on all GPUs alike. That its home is ready is what the first
/// meeting of a load says, so the home comes, too.
Process CaisKernels::post_all(GpuId gpu, std::uint32_t piece, For what) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const GpuId home = layer_.pieces.home(piece);
    const sim::CounterId turn = window(what).turn + home;
    if (coordinate_) co_await endpoint.until(turn, piece / layer_.gpus.count());
    const std::uint32_t first = first_block(piece);
    come(gpu, what, first, what == For::load ? layer_.gpus.count() : layer_.others());
    const std::vector<TpLayer::Stretch> parts = layer_.parts_of(piece, part_bytes_);
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
        if (i % parts_of_block_ == 0) {
            const std::uint32_t block = i / parts_of_block_;
            co_await met(gpu, what, first + block);
            if (i + parts_of_block_ < parts.size())
                come(gpu, what, first + block + 1, layer_.others());
        }
        co_await enter(gpu, home, what);
        endpoint.post(request(piece, parts[i], what));
    }
    endpoint.increase(turn);
}

Process CaisKernels::reduce(GpuId gpu, std::uint32_t piece) {
    if (layer_.home_here(gpu, piece))
        layer_.gpus.endpoint(gpu).increase(made_ + piece);
    else
        co_await post_all(gpu, piece, For::reduction);
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
        std::int64_t pieces = 0;
        for (std::uint32_t i = 0; i < layer_.pieces.each(); ++i)
            if (home != gpu && layer_.pieces.of(home, i) < layer_.pieces.count()) ++pieces;
        const Window& reductions = window(For::reduction);
        co_await layer_.gpus.endpoint(gpu).until(reductions.turn + home, pieces);
        const std::int64_t all = reductions.posted[gpu][home];
        co_await layer_.gpus.endpoint(gpu).until(reductions.through + home, all);
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
    co_await run_stream_blocks(layer_.gpus.card(gpu), traffic, KernelName::norm,
                               sim::Priority::high);
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
    const auto line = static_cast<std::uint64_t>(layer_.gpus.fabric.link().payload);
    endpoint.post({.from_sm = true,
                   .bytes = TpFlags::kBytes,
                   .address = piece * line,
                   .arrived = ready_ + piece,
                   .group = everyone_});
}

Process CaisKernels::load(GpuId gpu, std::uint32_t piece, SecondGemm& gemm) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const bool home = layer_.home_here(gpu, piece);
    // If kernels run one by one, all pieces are ready when the second starts; else homes say so.
    const bool told = !coordinate_ && layer_.system.fuse_blocks;
    if (home || told) co_await endpoint.until(ready_ + piece, 1);
    if (home) {
        come(gpu, For::load, first_block(piece), layer_.gpus.count());
    } else {
        co_await post_all(gpu, piece, For::load);
        const std::size_t parts = layer_.parts_of(piece, part_bytes_).size();
        co_await endpoint.until(answered_ + piece, static_cast<std::int64_t>(parts));
    }
    gemm.came(piece);
    endpoint.increase(loaded_);
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
