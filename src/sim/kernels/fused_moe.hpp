/// The experts of one card, from permutation to weighted sum, as fused kernels run them.
#pragma once
#include <moehub/predict.hpp>

namespace moehub {

KernelCost fused_moe(const Gpu& gpu, const MoeKernel& kernel, const MoeCall& call);

}  // namespace moehub
