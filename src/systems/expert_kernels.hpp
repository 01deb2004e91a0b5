/// The experts of a GPU as kernels of their own, one after the other, once all rows are there: a
/// grouped GEMM, the activation, a grouped GEMM.
#pragma once
#include "systems/layer.hpp"

namespace moehub::systems {

/// Bytes of a row as the experts read it.
double expert_bytes(const Layer& layer);

/// Ends after the second GEMM and reports the GPU's milestones. Takes no time where only rows move.
Process run_grouped_experts(Layer& layer, GpuId gpu);

/// Shared experts beside everything else; `done` is 1 in the end.
Process run_shared_beside(Layer& layer, GpuId gpu, sim::CounterId done);

}  // namespace moehub::systems
