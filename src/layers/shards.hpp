/// Rows of experts that several GPUs share: a row goes to one of them, the one with the number that
/// its home has among its own, and is gathered by the others; of what all made of it the same GPU
/// gets the sum, which goes home. Where a group lies in one node, a row crosses between nodes once.
#pragma once
#include "layers/exchange.hpp"

namespace moehub::layers {

class Shards {
  public:
    explicit Shards(MoeLayer& layer);

    /// Among the GPUs that share experts: what this one received, with `bytes` a row, to all of
    /// them. Ends with what all received. A GPU that shares nothing has nobody to tell.
    Process gather(GpuId gpu, Rows rows, Bytes bytes);
    Rows gathered(GpuId gpu) const { return gather_.received_from_all(gpu); }

    /// A GPU's results of all gathered rows; those of each go to the GPU that received it, which
    /// adds them up.
    Process scatter_sums(GpuId gpu, const Rows& results);
    /// After that: what is to go home, by home. A sum is as many rows as GPUs share an expert, in
    /// their order.
    std::vector<Rows> sums(GpuId gpu) const;
    /// Bytes of sums.
    std::vector<Bytes> sum_bytes(const std::vector<Rows>& sums) const;
    /// Enters the sums that came home.
    void take_back(const Rows& sums);

    bool shared() const { return layer_.shards() > 1; }

  private:
    MoeLayer& layer_;
    AllToAll gather_;
    AllToAll scatter_;
};

}  // namespace moehub::layers
