/// Gpu: one accelerator's compute, memory and overheads, as plain values.
#pragma once
#include <moehub/units.hpp>

namespace moehub {

/// What kernels reach on the card: rates, shares and latencies fitted to measured operators, one
/// value for all shapes (docs/gpu-model.md). The defaults are those of the measured H200.
struct Kernels {
    double tensor_efficiency = 0.818;  ///< of bf16_flops, with all SMs at work and the clock full
    double throttled_clock = 0.858;    ///< of that, once the power limit has lowered the clock
    Ps boost_time = 5'760 * kUs;       ///< operators up to this long, replayed, keep the full clock

    double hbm_efficiency = 0.838;  ///< of hbm_bandwidth, reading long contiguous runs
    double hbm_narrow = 0.659;      ///< of hbm_bandwidth, reading narrow pieces far apart
    double hbm_write = 0.771;       ///< of hbm_bandwidth, writing
    double l2_resident = 0.42;      ///< of l2_capacity, what stays from one replay to the next

    double gemm_load = 107e9;       ///< bytes/s into the shared memory of one SM
    double gemm_store = 94.2e9;     ///< bytes/s of finished output from one SM
    double grouped_load = 83.5e9;   ///< as gemm_load, in the grouped kernel
    double grouped_store = 35.8e9;  ///< as gemm_store, in the grouped kernel

    Ps gemm_start = 2'930 * kNs;       ///< launch, descriptors, first loads of a GEMM
    Ps grouped_start = 9'160 * kNs;    ///< as gemm_start, with the kernel that lists the groups
    Ps stream_start = 3'790 * kNs;     ///< launch and first loads of a memory-bound kernel
    Ps split_k_reduce = 1'270 * kNs;   ///< launch of the kernel that adds split-K parts
    Ps graph_replay = 4'500 * kNs;     ///< replay of a CUDA graph beyond its kernels
    Ps graph_replay_floor = 16 * kUs;  ///< no replay between two events is shorter
    Ps sort_block = 29'700 * kNs;      ///< a sort that one thread block does, but for its keys
    double sort_block_rate = 7.54e9;   ///< bytes/s of keys and indices in that sort
    Ps sort_pass = 9'370 * kNs;        ///< one of the 8 passes of a sort over all SMs
};

struct Gpu {
    int sms = 0;            ///< streaming multiprocessors
    double clock = 0;       ///< Hz, sustained
    double bf16_flops = 0;  ///< dense tensor-core FLOP/s of the whole card
    double fp8_flops = 0;
    double hbm_bandwidth = 0;  ///< bytes/s, datasheet
    Bytes hbm_capacity = 0;
    Bytes l2_capacity = 0;
    Kernels kernels;
};

}  // namespace moehub
