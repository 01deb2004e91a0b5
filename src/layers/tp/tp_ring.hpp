/// Pieces of a tensor-parallel sub-layer around a ring: sums to their homes, each GPU adding its
/// own to what it passes on; and rows from their homes to all.
///
/// Every GPU sends to the one before it. So its GEMM makes the pieces in their order, from the home
/// behind it on and around, as the ring wants them: a piece sets out at the GPU before its home,
/// whose GEMM begins with it, and ends at its home, which makes its own last.
#pragma once
#include "layers/tp/tp_layer.hpp"

#include <functional>

namespace moehub::layers {

class TpRing {
  public:
    /// What a GPU awaits between having a piece and sending it on, or being through with it.
    using Turn = std::function<Process(GpuId gpu, Bytes bytes)>;
    TpRing(TpLayer& layer, Turn turn);

    GpuId next(GpuId gpu) const { return ahead(gpu, gpus() - 1); }
    /// The GPU's partial sums of a piece lie in memory.
    void made(GpuId gpu, std::uint32_t piece) { layer_.gpus.endpoint(gpu).increase(made_ + piece); }
    /// Ends when the piece's sum so far has left the GPU, or is whole at its home.
    Process reduce(GpuId gpu, std::uint32_t piece);
    /// Ends when the piece, which its home shares, has come and left for the next GPU.
    Process gather(GpuId gpu, std::uint32_t piece);
    /// The shared piece has come; not at its home, where nothing comes.
    sim::Endpoint::Until gathered(GpuId gpu, std::uint32_t piece) {
        return layer_.gpus.endpoint(gpu).until(gathered_ + piece, 1);
    }

  private:
    std::uint32_t gpus() const { return layer_.gpus.count(); }
    GpuId ahead(GpuId gpu, std::uint32_t steps) const {
        return static_cast<GpuId>((gpu + steps) % gpus());
    }

    TpLayer& layer_;
    Turn turn_;
    sim::CounterId made_;      ///< by piece
    sim::CounterId passed_;    ///< by piece: what the GPU behind has added up has come
    sim::CounterId gathered_;  ///< by piece
};

}  // namespace moehub::layers
