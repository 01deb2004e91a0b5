/// Rows that lie with their token's GPU, by the expert that wants them, until that expert's GPU
/// pulls them: block by block, from as many GPUs as have rows of the block.
#pragma once
#include "layers/mail.hpp"

namespace moehub::layers {

class PulledRows {
  public:
    /// `counts`: how many rows each GPU has for each expert; an expert's rows stand in the order of
    /// the GPUs that have them.
    PulledRows(MoeLayer& layer, const RowCounts& counts, const char* name);

    /// A GPU's rows, by the GPU that will pull them.
    void offer(GpuId gpu, const std::vector<Rows>& by_peer);
    /// Loads some of an expert's rows, of `bytes` each; returns how many loads that takes.
    struct Block {
        int expert = 0;
        RowRange rows = {};
        Bytes bytes = 0;
        sim::CounterId arrived = 0;  ///< of the reader, one more for each load
    };
    std::int64_t pull(GpuId reader, const Block& block);
    /// When all loads of a block have arrived: its rows, in their order.
    Rows take(GpuId reader, sim::CounterId arrived) { return mail_.rows_under(reader, arrived); }

  private:
    std::uint64_t key_of(GpuId reader, int expert) const;

    MoeLayer& layer_;
    const RowCounts& counts_;
    Mail mail_;
};

}  // namespace moehub::layers
