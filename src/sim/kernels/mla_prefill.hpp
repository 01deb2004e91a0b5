/// Latent attention of whole prompts.
#pragma once
#include <moehub/predict.hpp>

namespace moehub {

KernelCost mla_prefill(const Gpu& gpu, const MlaPrefillKernel& kernel, const MlaPrefillCall& call);

}  // namespace moehub
