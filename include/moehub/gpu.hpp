/// Gpu: one accelerator's compute, memory and overheads, as plain values.
#pragma once
#include <moehub/units.hpp>

namespace moehub {

struct Gpu {
    int sms = 0;            ///< streaming multiprocessors
    double clock = 0;       ///< Hz, sustained
    double bf16_flops = 0;  ///< dense tensor-core FLOP/s of the whole card
    double fp8_flops = 0;
    double hbm_bandwidth = 0;  ///< bytes/s, datasheet
    Bytes hbm_capacity = 0;
    Bytes l2_capacity = 0;
};

}  // namespace moehub
