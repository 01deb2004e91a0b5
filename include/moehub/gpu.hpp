/// Gpu: one accelerator's compute, memory and overheads, as plain values.
#pragma once
#include <moehub/kernel_library.hpp>
#include <moehub/units.hpp>

#include <map>
#include <string>
#include <vector>

namespace moehub {

/// What PyTorch's kernels reach on the card: rates, shares and latencies fitted to measured
/// operators, one value for all shapes (docs/gpu-model.md). The defaults are those of the measured
/// H200.
struct Kernels {
    double tensor_efficiency = 0.833;  ///< share of bf16_flops, all SMs at work, the clock full
    double throttled_clock = 0.846;    ///< share of the clock that the power limit leaves
    double other_power = 0.61;         ///< power draw with tensor cores at rest, over at work
    Ps boost_time = 5'530 * kUs;       ///< operators up to this long, replayed, keep the full clock

    double hbm_efficiency = 0.834;  ///< share of hbm_bandwidth, reading long contiguous runs
    double hbm_narrow = 0.663;      ///< share of hbm_bandwidth, reading narrow pieces far apart
    double hbm_write = 0.731;       ///< share of hbm_bandwidth, writing
    double l2_resident = 0.752;     ///< share of l2_capacity that stays from one replay to the next

    double gemm_load = 108e9;       ///< bytes/s into the shared memory of one SM
    double gemm_store = 40.8e9;     ///< bytes/s of finished output from one SM
    double grouped_load = 83.7e9;   ///< bytes/s into the shared memory of one SM, grouped kernel
    double grouped_store = 31.7e9;  ///< bytes/s of finished output from one SM, grouped kernel
    double stream_load = 30.3e9;  ///< bytes/s that one SM reads and writes in a memory-bound kernel

    double row_load = 54e9;      ///< bytes/s that one SM reads of rows which it sends, from L2
    double row_load_hbm = 18e9;  ///< bytes/s that one SM reads of rows which it sends, from HBM
    double row_store = 54e9;     ///< bytes/s that one SM stores of rows which it sends

    Ps gemm_start = 2'380 * kNs;          ///< launch, descriptors, first loads of a GEMM
    Ps grouped_start = 10'100 * kNs;      ///< grouped GEMM's start, with the kernel listing groups
    Ps stream_start = 1'670 * kNs;        ///< launch and first loads of a memory-bound kernel
    Ps narrow_start = 2'620 * kNs;        ///< launch and first loads of a kernel that sums rows
    Ps split_k_reduce = 2'740 * kNs;      ///< launch of the kernel that adds split-K parts
    Ps graph_replay = 3'620 * kNs;        ///< replay of a CUDA graph alone, beyond its kernels
    Ps graph_replay_floor = 9'500 * kNs;  ///< what a fast host needs to send off a replay
    Ps sort_block = 30'700 * kNs;         ///< a sort that one thread block does, but for its keys
    double sort_block_rate = 8.07e9;      ///< bytes/s of keys and indices in that sort
    Ps sort_pass = 9'480 * kNs;           ///< one of the 8 passes of a sort over all SMs
    Ps route_start = 20 * kUs;            ///< top-k and softmax of a router: their kernels alone
    Ps route_row = 1'600;                 ///< time of a router's kernels for each token
    double route_logits = 2.1e10;         ///< logits/s of a router's kernels
    double scatter_add = 161e9;  ///< bytes/s of rows weighted and added to others at random
    double index_add = 238e9;    ///< bytes/s of rows only added to others, with atomics

    // The rest of a transformer layer.
    double hbm_copy = 0.88;         ///< share of hbm_bandwidth, whole tensors moved in order
    double copy_load = 47e9;        ///< bytes/s of one SM in kernels that work element by element
    double plain_elements = 2.8e9;  ///< elements/s of one SM in PyTorch's plain kernels: each is
                                    ///< found by itself, on a part of each row or for all of it
    double norm_load = 27.4e9;      ///< bytes/s of one SM in kernels that reduce each row first
    Bytes norm_l1 = 98'400;         ///< bytes of an SM's rows near for a norm's second read
    Ps norm_row = 74'400;           ///< time of one SM for the mean and variance of each row
    double quantise_load = 19e9;    ///< bytes/s of one SM in a quantisation by rows

    double fp8_efficiency = 0.907;          ///< tensor_efficiency of FP8 over bf16's, in a GEMM
    double fp8_load = 96.7e9;               ///< bytes/s into the shared memory of one SM, FP8
    double fp8_grouped_efficiency = 0.691;  ///< fp8_efficiency of the grouped kernel
    double fp8_grouped_load = 61.4e9;       ///< grouped_load of FP8
    Ps fp8_grouped_start = 20'000 * kNs;    ///< grouped_start of FP8

    Ps attention_start = 5'100 * kNs;        ///< launch of attention with its small kernels
    Ps attention_block = 1'260 * kNs;        ///< time of a block of 128 queries, beyond its scores
    double attention_softmax = 2.96e10;      ///< scores/s of one SM
    double attention_back_softmax = 8.56e9;  ///< scores/s of one SM, on the way back
    double attention_back_passes = 10.8;     ///< extra bytes moved on the way back, over those of Q
    double flash2_tensor = 0.377;            ///< share of bf16_flops that FlashAttention-2 reaches
    Ps flash2_block = 3'470 * kNs;           ///< attention_block of FlashAttention-2
    double flash2_softmax = 1.27e11;
    double flash2_back_softmax = 1.34e10;
    double flash2_back_passes = 20.3;

    double attention_clock = 0.96;  ///< throttled_clock of attention, which draws less power

    // What training adds.
    double hbm_mixed = 0.71;       ///< share of hbm_bandwidth, many tensors moved at once
    double cast_load = 21.3e9;     ///< copy_load where the tensors' types differ
    double softmax_load = 38.3e9;  ///< norm_load of a softmax over the vocabulary

    Ps slow_replay = 6'430 * kNs;         ///< graph_replay, while the host is slow
    Ps slow_replay_floor = 17'400 * kNs;  ///< graph_replay_floor, while the host is slow
};

/// What the host and synchronisation cost. The defaults were measured on an H200 and its host.
struct Overheads {
    Ps graph_launch = 590 * kNs;     ///< one kernel after another inside a CUDA graph
    Ps eager_launch = 42 * kUs;      ///< one operator of an eager framework, on the host
    double autograd_notes = 1.43;    ///< times eager_launch: an operator noted for the way back
    double autograd_issues = 0.71;   ///< times eager_launch: an operator of the way back
    Ps eager_latency = 20 * kUs;     ///< from the first of an idle card's launches to its kernel
    Ps host_sync = 15'800 * kNs;     ///< a kernel, 1 KB of its output to the host, the host waits
    Ps atomic_latency = 166 * kNs;   ///< one atomic add to global memory
    Ps flag_round_trip = 427 * kNs;  ///< between two SMs through L2, there and back
};

/// How SMs move rows between GPUs in kernels made for that alone: whole rows by warps. Fitted to
/// DeepEP's published times (docs/systems.md); the defaults are those of the H200.
struct Exchange {
    double push = 60e9;           ///< bytes/s of an SM that sends into queues on its peers: its
                                  ///< warps are divided evenly over them
    Ps push_row = 290 * kNs;      ///< time of a sending warp for each row, beyond its bytes
    Ps push_token = 134 * kNs;    ///< time of a sending warp for each token, sent or not
    double sum_load = 65e9;       ///< bytes/s of rows that an SM adds up
    double sum_store = 18e9;      ///< bytes/s of sums, or of rows that it packs
    double first_load = 9.8e9;    ///< bytes/s of rows that one warp alone adds up: the last sum's
    double first_store = 1.7e9;   ///< bytes/s of sums that one warp alone stores: the last sum's
    Ps copy_row = 150 * kNs;      ///< time of an SM that has its copy engine (TMA) move a row
    double copy_sum = 42.5e9;     ///< bytes/s of rows that an SM fetches by TMA and adds up
    Ps post_row = 850 * kNs;      ///< time of an SM that has its NIC send a row
    Ps cast_token = 1'220 * kNs;  ///< time of an SM that casts a token and sends it to its experts
    double cast = 21e9;           ///< bytes/s that an SM casts and sends
    double scatter = 280e9;       ///< bytes/s of rows that all SMs together store away, each warp
                                  ///< a row to where it belongs
    Ps dispatch_start =
        4'300 * kNs;                 ///< start of a kernel on all SMs: launch, flags, SMs' meetings
    Ps combine_start = 7'900 * kNs;  ///< start of the kernel that adds up results
    Ps dispatch_expert = 2'050 * kNs;  ///< more start for each expert that one SM counts
    Ps combine_expert = 600 * kNs;     ///< more start for each expert that one SM raises a flag for
    Ps call = 21 * kUs;  ///< an eager call of a library beyond its kernel: launches, clearing of
                         ///< queues, a barrier of all GPUs
};

struct Gpu {
    std::string generation;    ///< generation whose libraries it runs: "hopper", …; may be empty
    int sms = 0;               ///< streaming multiprocessors
    double clock = 0;          ///< Hz, largest of the SMs
    double bf16_flops = 0;     ///< dense tensor-core FLOP/s of the whole card
    double fp8_flops = 0;      ///< 0: no FP8 units
    double nvfp4_flops = 0;    ///< 0: no FP4 units
    double hbm_bandwidth = 0;  ///< bytes/s, datasheet
    Bytes hbm_capacity = 0;
    double host_bandwidth = 55e9;  ///< bytes/s to and from the host's memory, each way
    Bytes host_capacity = 0;       ///< a GPU's share of the host's memory; 0: not known
    Bytes l2_capacity = 0;
    Kernels kernels;  ///< what PyTorch's kernels reach
    Overheads overheads;
    std::map<std::string, KernelLibrary> libraries;  ///< serving engines', by name: "trtllm", …
    std::string library = "torch";  ///< whose kernels models run outside their MoE layers
    /// Tables of constants that no file of the card gives and its generation does.
    std::vector<std::string> inherited;
    Exchange exchange;
};

}  // namespace moehub
