/// What plain PyTorch runs for a MoE layer whose experts are all on one card: operators in the
/// order in which the host issues them, as in validation/measure_whole_layers.py.
#pragma once
#include "sim/gpu/kernel_log.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/tile.hpp"

#include <moehub/gpu.hpp>

#include <variant>
#include <vector>

namespace moehub::layers {

struct TorchShape {
    std::int64_t tokens = 0;
    std::vector<std::int64_t> rows;  ///< rows of each expert
    std::int64_t hidden = 0;
    std::int64_t inner = 0;
    bool gated = true;
};

/// Kernels that follow one another, issued by so many operators of the framework.
struct TorchOperator {
    int operators = 1;
    std::variant<GemmPlan, Traffic, double> kernel;  ///< the last: seconds
    sim::KernelName name = sim::KernelName::other;
};

/// Up to the first GEMM of the experts, and the rest.
struct TorchPass {
    std::vector<TorchOperator> first;
    std::vector<TorchOperator> rest;
};

TorchPass torch_forward(const Gpu& gpu, const TorchShape& shape);

/// The gradients of all these operators, as autograd derives each: of inputs and weights.
TorchPass torch_backward(const Gpu& gpu, const TorchShape& shape);

}  // namespace moehub::layers
