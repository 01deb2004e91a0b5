/// A card of which kernels have a part.
#pragma once
#include <moehub/gpu.hpp>

namespace moehub {

/// With so many of its SMs, and as much of its tensor cores; its memory is whole.
inline Gpu with_sms(Gpu gpu, int sms) {
    gpu.bf16_flops *= static_cast<double>(sms) / gpu.sms;
    gpu.fp8_flops *= static_cast<double>(sms) / gpu.sms;
    gpu.nvfp4_flops *= static_cast<double>(sms) / gpu.sms;
    gpu.sms = sms;
    return gpu;
}

}  // namespace moehub
