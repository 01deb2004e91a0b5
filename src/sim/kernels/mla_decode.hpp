/// Latent attention of one new token per sequence.
#pragma once
#include <moehub/predict.hpp>

namespace moehub {

KernelCost mla_decode(const Gpu& gpu, const MlaDecodeKernel& kernel, const MlaDecodeCall& call);

}  // namespace moehub
