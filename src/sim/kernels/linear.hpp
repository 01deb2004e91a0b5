/// A linear layer, activations quantised before it where its format asks for that.
#pragma once
#include <moehub/predict.hpp>

namespace moehub {

/// The constants of the format.
const GemmFormat& gemm_of(const KernelLibrary& library, NumberFormat format);

KernelCost linear(const Gpu& gpu, const KernelLibrary& library, const GemmCall& call);

}  // namespace moehub
