#include "layers/tp/tp_ring.hpp"

namespace moehub::layers {

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

}  // namespace moehub::layers
