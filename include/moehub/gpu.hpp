/// Gpu: one accelerator's compute, memory and overheads, as plain values.
#pragma once
#include <moehub/units.hpp>

namespace moehub {

/// What kernels reach on the card: rates, shares and latencies fitted to measured operators, one
/// value for all shapes (docs/gpu-model.md). The defaults are those of the measured H200.
struct Kernels {
    double tensor_efficiency = 0.833;  ///< of bf16_flops, with all SMs at work and the clock full
    double throttled_clock = 0.846;    ///< of that, once the power limit has lowered the clock
    Ps boost_time = 5'530 * kUs;       ///< operators up to this long, replayed, keep the full clock

    double hbm_efficiency = 0.834;  ///< of hbm_bandwidth, reading long contiguous runs
    double hbm_narrow = 0.663;      ///< of hbm_bandwidth, reading narrow pieces far apart
    double hbm_write = 0.731;       ///< of hbm_bandwidth, writing
    double l2_resident = 0.752;     ///< of l2_capacity, what stays from one replay to the next

    double gemm_load = 108e9;       ///< bytes/s into the shared memory of one SM
    double gemm_store = 40.8e9;     ///< bytes/s of finished output from one SM
    double grouped_load = 83.7e9;   ///< as gemm_load, in the grouped kernel
    double grouped_store = 31.7e9;  ///< as gemm_store, in the grouped kernel
    double stream_load = 30.3e9;  ///< bytes/s that one SM reads and writes in a memory-bound kernel

    Ps gemm_start = 2'380 * kNs;          ///< launch, descriptors, first loads of a GEMM
    Ps grouped_start = 10'100 * kNs;      ///< as gemm_start, with the kernel that lists the groups
    Ps stream_start = 1'670 * kNs;        ///< launch and first loads of a memory-bound kernel
    Ps narrow_start = 2'620 * kNs;        ///< as stream_start, of one that sums rows
    Ps split_k_reduce = 2'740 * kNs;      ///< launch of the kernel that adds split-K parts
    Ps graph_replay = 3'620 * kNs;        ///< replay of a CUDA graph alone, beyond its kernels
    Ps graph_replay_floor = 9'500 * kNs;  ///< what a fast host needs to send off a replay
    Ps sort_block = 30'700 * kNs;         ///< a sort that one thread block does, but for its keys
    double sort_block_rate = 8.07e9;      ///< bytes/s of keys and indices in that sort
    Ps sort_pass = 9'480 * kNs;           ///< one of the 8 passes of a sort over all SMs
    Ps route_start = 20 * kUs;            ///< top-k and softmax of a router: their kernels alone
    Ps route_row = 1'600;                 ///< of that, for each token
    double route_logits = 2.1e10;         ///< logits/s of that, further
    double scatter_add = 161e9;  ///< bytes/s of rows added to others at random, with atomics
};

/// What the host and synchronisation cost. The defaults were measured on an H200 and its host.
struct Overheads {
    Ps graph_launch = 590 * kNs;     ///< one kernel after another inside a CUDA graph
    Ps eager_launch = 42 * kUs;      ///< one operator of an eager framework, on the host
    Ps host_sync = 15'800 * kNs;     ///< a kernel, 1 KB of its output to the host, the host waits
    Ps atomic_latency = 166 * kNs;   ///< one atomic add to global memory
    Ps flag_round_trip = 427 * kNs;  ///< between two SMs through L2, there and back
};

struct Gpu {
    int sms = 0;            ///< streaming multiprocessors
    double clock = 0;       ///< Hz, largest of the SMs
    double bf16_flops = 0;  ///< dense tensor-core FLOP/s of the whole card
    double fp8_flops = 0;
    double hbm_bandwidth = 0;  ///< bytes/s, datasheet
    Bytes hbm_capacity = 0;
    Bytes l2_capacity = 0;
    Kernels kernels;
    Overheads overheads;
};

}  // namespace moehub
