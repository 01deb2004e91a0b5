/// Attention over a paged cache of one new token per sequence.
#pragma once
#include <moehub/predict.hpp>

namespace moehub {

KernelCost decode_attention(const Gpu& gpu, const DecodeKernel& kernel, const DecodeCall& call);

}  // namespace moehub
