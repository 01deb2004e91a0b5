/// A dense FFN under tensor parallelism, as a workload beside the MoE layer: every GPU has a slice
/// of both matrices' inner width, all tokens pass all GPUs, and each GPU's outputs are partial
/// sums.
///
/// In the end every GPU must hold, for every token, the sum of all GPUs' partial sums, each once.
#pragma once
#include "layers/gpus.hpp"

#include <moehub/model.hpp>

namespace moehub::layers {

struct TpJob {
    const Machine& machine;
    const Model& model;
    std::int64_t tokens = 0;  ///< at least one for each GPU
    GpusOptions options = {};
};

class TpLayer {
  public:
    /// Throws InputError when the model's dense FFN cannot be cut so.
    explicit TpLayer(const TpJob& job);

    Bytes row_bytes() const { return 2 * Bytes{job_.model.hidden}; }
    std::uint32_t first_token(GpuId gpu) const;  ///< of those that the GPU adds up
    std::uint32_t tokens(GpuId gpu) const { return first_token(gpu + 1) - first_token(gpu); }

    /// Both GEMMs and the activation on the GPU's slice; its partial sums lie in `partials` then.
    Process run_ffn(GpuId gpu);
    /// Who goes on with its tokens' sums must have them, and the GPU's program is through when it
    /// has all outputs: both throw std::logic_error when one is missing or wrong.
    void check_sums(GpuId gpu);
    void finish(GpuId gpu);
    LayerResult result();

    Gpus gpus;
    sim::RegionId partials = 0;  ///< on every GPU: of all tokens
    sim::RegionId totals = 0;    ///< on every GPU: of its own tokens, over all GPUs
    sim::RegionId outputs = 0;   ///< on every GPU: rows of all tokens

  private:
    std::uint64_t identity(GpuId gpu, std::uint32_t token) const;

    TpJob job_;
};

}  // namespace moehub::layers
