/// In-switch collectives on a tensor-parallel sub-layer's rows, each GPU its own share.
#pragma once
#include "layers/tp/tp_layer.hpp"
#include "sim/collective/communicator.hpp"

namespace moehub::layers {

/// The rows whose home the GPU is, which follow one another (Homes::blockwise).
inline sim::Slice own_rows(const TpLayer& layer, GpuId gpu) {
    const std::uint32_t first = layer.pieces.of(gpu, 0);
    sim::Slice slice;
    if (first >= layer.pieces.count()) return slice;
    const std::uint32_t behind =
        std::min(layer.pieces.of(gpu, layer.pieces.each() - 1), layer.pieces.count() - 1);
    slice.target.row = layer.pieces.begin(first);
    slice.begin = layer.pieces.begin(first) * layer.row_bytes();
    slice.bytes = layer.pieces.end(behind) * layer.row_bytes() - slice.begin;
    return slice;
}

/// Everyone's partial sums, added up on their way to this GPU's totals.
inline sim::Slice own_sums(const TpLayer& layer, GpuId gpu) {
    sim::Slice slice = own_rows(layer, gpu);
    slice.target.region = layer.partials;
    slice.target.into = layer.totals;
    return slice;
}

/// Rows of this GPU, from its sums `from`, to everyone's outputs.
inline sim::Slice own_outputs(TpLayer& layer, GpuId gpu, sim::RegionId from) {
    sim::Slice slice = own_rows(layer, gpu);
    slice.target.region = layer.outputs;
    slice.target.numbers = layer.gpus.hub(gpu).sums(from).numbers(slice.target.row);
    return slice;
}

/// Calls share() for all pieces of the GPU.
inline void share_own(TpLayer& layer, GpuId gpu, TpLayer::Sum sum, bool normalised) {
    for (std::uint32_t i = 0; i < layer.pieces.each(); ++i) {
        const std::uint32_t piece = layer.pieces.of(gpu, i);
        if (piece < layer.pieces.count()) layer.share(gpu, piece, sum, normalised);
    }
}

}  // namespace moehub::layers
