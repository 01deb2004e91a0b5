#include "layers/tp/tp_moves.hpp"

#include "layers/exchange.hpp"
#include "layers/tp/tp_pieces.hpp"

namespace moehub::layers {

namespace {

constexpr Bytes kLargestPart = 65536;

}  // namespace

/// An eighth of what may be in flight, in whole packets.
PieceLoads::PieceLoads(TpLayer& layer, GpuId gpu, Bytes window)
    : endpoint_(layer.gpus.endpoint(gpu)), answered_(endpoint_.add_counter("loads of a piece")) {
    const Bytes payload = layer.input.machine.link.payload;
    const Bytes most = std::max(payload, kLargestPart / payload * payload);
    part_ = std::clamp<Bytes>(window / 8 / payload * payload, payload, most);
    most_ = std::max<Bytes>(1, window / part_);
}

Process PieceLoads::load(sim::Transfer whole) {
    for (Bytes offset = 0; offset < whole.bytes; offset += part_) {
        co_await endpoint_.until(answered_, ++posted_ - most_);
        sim::Transfer one = part_of(whole, offset, part_);
        one.answered = answered_;
        endpoint_.post(one);
    }
}

sim::Transfer part_of(const sim::Transfer& whole, Bytes offset, Bytes size) {
    sim::Transfer part = whole;
    part.bytes = std::min(size, whole.bytes - offset);
    part.address += static_cast<std::uint64_t>(offset);
    part.target.offset += static_cast<std::uint32_t>(offset);
    return part;
}

void TpFlags::raise(GpuId from, GpuId to, std::uint32_t number) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(from);
    if (from == to) return endpoint.increase(first_ + number);
    endpoint.post({.dst = to,
                   .from_sm = true,
                   .bytes = kBytes,
                   .address = (std::uint64_t{to} << 40) + (std::uint64_t{from} << 7),
                   .arrived = first_ + number});
}

void TpFlags::raise_at_others(GpuId from, std::uint32_t number) {
    for (std::uint32_t i = 1; i < layer_.gpus.count(); ++i)
        raise(from, static_cast<GpuId>((from + i) % layer_.gpus.count()), number);
}

TpRing::TpRing(TpLayer& layer, Turn turn)
    : layer_(layer),
      turn_(std::move(turn)),
      made_(layer.gpus.add_counters("partial sums of a piece", layer.pieces.count())),
      passed_(layer.gpus.add_counters("a piece's sum from the GPU behind", layer.pieces.count())),
      gathered_(layer.gpus.add_counters("a piece of the ring", layer.pieces.count())) {}

Process TpRing::reduce(GpuId gpu, std::uint32_t piece) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const GpuId home = layer_.pieces.home(piece);
    co_await endpoint.until(made_ + piece, 1);
    if (gpu != next(home)) {
        co_await endpoint.until(passed_ + piece, 1);
        layer_.absorb(gpu, piece, ahead(gpu, 1));
    }
    co_await turn_(gpu, layer_.piece_bytes(piece));
    if (gpu == home) co_return;
    sim::Transfer sum = layer_.reduction(next(gpu), piece, layer_.passed);
    sum.arrived = passed_ + piece;
    endpoint.post(sum);
}

Process TpRing::gather(GpuId gpu, std::uint32_t piece) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const GpuId home = layer_.pieces.home(piece);
    if (gpu != home) co_await gathered(gpu, piece);
    co_await turn_(gpu, layer_.piece_bytes(piece));
    if (next(gpu) == home) co_return;
    sim::Transfer rows = layer_.store(next(gpu), piece);
    rows.arrived = gathered_ + piece;
    endpoint.post(rows);
}

SwitchedKernel::SwitchedKernel(TpLayer& layer, Norm norm)
    : layer_(layer),
      norm_(norm),
      all_(layer.gpus.fabric.groups().add(layer.gpus.all())),
      ready_(layer, "partial sums of a piece", layer.pieces.count()),
      met_(layer, "GPUs whose rows are stored", 1),
      loaded_(layer.gpus.add_counters("sums of a piece", layer.pieces.count())),
      stored_(layer.gpus.add_counters("acknowledged rows of a piece", layer.pieces.count())) {
    const int sms = lost_sms(layer);
    for (const GpuId gpu : layer.gpus.all()) {
        sms_.emplace_back(layer.gpus.card(gpu), sms);
        loads_.emplace_back(layer, gpu, sms * layer.system.load_window);
    }
}

Process SwitchedKernel::run_first(GpuId gpu) {
    const int sms = layer_.gpus.card(gpu).gpu.sms - layer_.system.communication_sms;
    co_await run_first_by_pieces(layer_, gpu, {sms, 0}, [this, gpu](std::uint32_t piece) {
        ready_.raise(gpu, layer_.pieces.home(piece), piece);
    });
    layer_.gpus.combine_began(gpu);
}

Process SwitchedKernel::run(GpuId gpu) {
    const Communicating communicating(layer_.gpus.card(gpu));
    Several pieces(layer_.gpus.endpoint(gpu));
    if (layer_.has_first()) pieces.spawn("loads of sums", load_sums(gpu));
    for (const std::uint32_t piece : own_pieces(layer_, gpu))
        pieces.spawn("piece at its home", share(gpu, piece));
    co_await pieces.all();
    co_await sms_[gpu].all();
    if (layer_.has_second()) {
        met_.raise_at_others(gpu);
        co_await met_.until(gpu, layer_.others());
    }
    sms_[gpu].release();
}

/// In the order in which GEMMs make them.
Process SwitchedKernel::load_sums(GpuId gpu) {
    for (const std::uint32_t piece : own_pieces(layer_, gpu)) {
        co_await ready_.until(gpu, layer_.gpus.count(), piece);
        sim::Transfer sums = layer_.load(piece);
        sums.group = all_;
        sums.target.region = layer_.partials;
        sums.target.into = layer_.totals;
        sums.arrived = loaded_ + piece;
        co_await loads_[gpu].load(sums);
    }
}

Process SwitchedKernel::share(GpuId gpu, std::uint32_t piece) {
    sim::Endpoint& endpoint = layer_.gpus.endpoint(gpu);
    const Bytes bytes = layer_.piece_bytes(piece);
    if (layer_.has_first()) co_await endpoint.until(loaded_ + piece, loads_[gpu].parts(bytes));
    const Traffic norm = layer_.norm_traffic(layer_.pieces.rows(piece), 0);
    if (norm_ == Norm::own_sms) co_await sms_[gpu].pass(norm);
    if (norm_ == Norm::between_tiles)
        co_await run_stream_blocks(layer_.gpus.card(gpu), norm, KernelName::norm,
                                   sim::Priority::high);
    layer_.share(gpu, piece, layer_.has_first() ? TpLayer::Sum::all_in_totals : TpLayer::Sum::given,
                 true);
    if (!layer_.has_second()) co_return;
    co_await sms_[gpu].begin(static_cast<double>(bytes),
                             layer_.input.machine.gpu.kernels.row_store);
    sim::Transfer rows = layer_.store(gpu, piece);
    rows.group = all_;
    rows.from_sm = true;
    rows.answered = stored_ + piece;
    endpoint.post(rows);
    co_await endpoint.until(stored_ + piece, 1);
}

}  // namespace moehub::layers
