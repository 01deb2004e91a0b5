/// Loads of a tensor-parallel sub-layer's rows by SMs that keep so many bytes in flight and no
/// more.
#pragma once
#include "layers/tp/tp_layer.hpp"

namespace moehub::layers {

class PieceLoads {
  public:
    PieceLoads(TpLayer& layer, GpuId gpu, Bytes window);

    /// Posts a load part by part, as there is room; ends when the last is posted. Its `arrived`
    /// goes up with every part.
    Process load(sim::Transfer whole);
    /// Parts of a load of so many bytes.
    std::int64_t parts(Bytes bytes) const { return (bytes - 1) / part_ + 1; }

  private:
    sim::Endpoint& endpoint_;
    Bytes part_;
    std::int64_t most_;        ///< parts in flight
    sim::CounterId answered_;  ///< parts
    std::int64_t posted_ = 0;  ///< parts
};

/// The part of a transfer from `offset` on.
sim::Transfer part_of(const sim::Transfer& whole, Bytes offset, Bytes size);

}  // namespace moehub::layers
