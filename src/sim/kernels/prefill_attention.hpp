/// Attention over a paged cache of whole prompts.
#pragma once
#include <moehub/predict.hpp>

namespace moehub {

KernelCost prefill_attention(const Gpu& gpu, const PrefillKernel& kernel, const PrefillCall& call);

}  // namespace moehub
