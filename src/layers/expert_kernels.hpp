/// The experts of a GPU as kernels of their own, one after the other, once all rows are there: a
/// grouped GEMM, the activation, a grouped GEMM.
#pragma once
#include "layers/moe_layer.hpp"

namespace moehub::layers {

/// Bytes of a row as the experts read it.
double expert_bytes(const MoeLayer& layer);

/// A pass over the GPU's tokens before they are sent, where they travel in FP8.
Process quantise_tokens(MoeLayer& layer, GpuId gpu);
/// A pass over received rows where experts read another format than what was sent.
Process convert_rows(MoeLayer& layer, GpuId gpu, std::int64_t rows);

/// With so many rows for each of the GPU's experts. Takes no time where only rows move.
Process run_grouped_experts(MoeLayer& layer, GpuId gpu, std::vector<std::int64_t> rows);

/// Shared experts beside everything else; `done` is 1 in the end.
Process run_shared_beside(MoeLayer& layer, GpuId gpu, sim::CounterId done);
/// Shared experts last, and the end of the layer.
Process finish_with_shared(MoeLayer& layer, GpuId gpu);

}  // namespace moehub::layers
