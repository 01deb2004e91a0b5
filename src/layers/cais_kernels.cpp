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
      reduced_(layer.gpus.add_counter("acknowledged reductions")),
      answered_(layer.gpus.add_counters("a loaded piece", layer.pieces.count())),
      loaded_(layer.gpus.add_counter("pieces that the second GEMM has")),
      posted_(layer.gpus.count()) {
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

/// What its SMs' windows hold, and at least as much as keeps the links busy: a piece for each home.
std::int64_t CaisKernels::at_once() const {
    const Bytes window = layer_.system.load_window * layer_.input.machine.gpu.sms;
    return std::max<std::int64_t>(2, window / layer_.piece_bytes(0));
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
    while (coordinate_ && posted_[gpu] - endpoint.value(reduced_) >= at_once()) {
        const std::int64_t enough = posted_[gpu] - at_once() + 1;
        co_await endpoint.until(reduced_, enough);
    }
    ++posted_[gpu];
    sim::Transfer transfer = layer_.reduction(layer_.pieces.home(piece), piece, layer_.totals);
    transfer.target.merge = static_cast<std::uint16_t>(layer_.others());
    transfer.from_sm = true;
    transfer.answered = reduced_;
    endpoint.post(transfer);
}

sim::Endpoint::Until CaisKernels::summed(GpuId gpu, std::uint32_t piece) {
    const bool alone = layer_.others() == 0 || !layer_.has_first();
    return layer_.gpus.endpoint(gpu).until(sums_ + piece, alone ? 0 : 1);
}

sim::Endpoint::Until CaisKernels::own_made(GpuId gpu, std::uint32_t piece) {
    return layer_.gpus.endpoint(gpu).until(made_ + piece, layer_.has_first() ? 1 : 0);
}

sim::Endpoint::Until CaisKernels::all_acknowledged(GpuId gpu) {
    return layer_.gpus.endpoint(gpu).until(reduced_, posted_[gpu]);
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
    if (!home) {
        sim::Transfer transfer = layer_.load(piece);
        transfer.target.merge = static_cast<std::uint16_t>(layer_.others());
        transfer.answered = answered_ + piece;
        endpoint.post(transfer);
        co_await endpoint.until(transfer.answered, 1);
    }
    gemm.came(piece);
    endpoint.increase(loaded_);
}

Process CaisKernels::load_all(GpuId gpu, SecondGemm& gemm) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    for (std::uint32_t piece = 0; piece < layer_.pieces.count(); ++piece) {
        co_await endpoint.until(loaded_, piece - at_once() + 1);
        endpoint.spawn("load of a piece", load(gpu, piece, gemm));
    }
    co_await endpoint.until(loaded_, layer_.pieces.count());
}

}  // namespace moehub::layers
