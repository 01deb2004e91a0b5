/// The experts of one card, from permutation to weighted sum, as fused kernels run them.
#pragma once
#include "sim/kernels/expert_rows.hpp"

#include <moehub/predict.hpp>

namespace moehub {

/// The kernel for the format.
const MoeKernel& moe_of(const KernelLibrary& library, NumberFormat format);

/// The rows that the published measurements' routing leaves on the card.
ExpertRows rows_of(const MoeCall& call);

KernelCost fused_moe(const Gpu& gpu, const MoeKernel& kernel, const MoeCall& call,
                     const ExpertRows& rows);

}  // namespace moehub
