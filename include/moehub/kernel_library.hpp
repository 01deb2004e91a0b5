/// Kernel libraries of serving engines: what each of their kernels is and reaches on a generation
/// of cards. Fitted to published measurements (docs/cards.md); shares are of the card's datasheet,
/// so one value serves all cards of a generation. A kernel whose `start` is 0 is not there.
#pragma once
#include <moehub/units.hpp>

#include <cstdint>

namespace moehub {

/// Whose tile shapes a GEMM is cut into, and whether stores overlap (src/sim/kernels/linear.cpp).
enum class TileFamily { hopper, blackwell };

/// Linear layers: what all number formats share.
struct GemmKernel {
    TileFamily tiles = TileFamily::hopper;
    double hbm = 1;         ///< share of the bandwidth at which weights, inputs and outputs move
    double load = 64;       ///< bytes per cycle into the shared memory of one SM
    double store = 64;      ///< bytes per cycle of finished output from one SM
    Ps split_finish = 0;    ///< the second kernel that adds the parts of a split k
    double absent_row = 0;  ///< fp8-block, Hopper: cycles per step of k and row that a tile lacks
};

/// Linear layers of one number format.
struct GemmFormat {
    Ps start = 0;         ///< launches, those of quantisation included
    double tensor = 1;    ///< share of the card's peak that all SMs together sustain
    double chain = 0;     ///< cycles that a tile takes at least for a step of 1 in k
    double quantise = 1;  ///< activations quantised per cycle and SM; not of bf16
};

/// Attention of whole prompts (prefill_attention.cpp).
struct PrefillKernel {
    std::int64_t query_tile = 128;  ///< queries of a block
    std::int64_t most_keys = 256;   ///< most keys of one step of a block
    Ps start = 0;                   ///< launches of a call
    double row_cycles = 0;          ///< SM cycles of the pass before, per query row (token, head)
    double pass_bytes = 64;         ///< bytes that an SM moves in a cycle of the pass before
    double tensor = 1;              ///< share of the tensor cores' peak while products run
    double softmax = 0;             ///< cycles of a score that products do not hide
    double fp8_softmax = 0;         ///< further cycles of a score that is rounded to fp8
    double tail = 0;                ///< share of the longest block that SMs wait for the last one
    double fp8_window = 1;          ///< factor of a score's cost in windowed fp8 kernels
};

/// Attention of one new token per sequence (decode_attention.cpp).
struct DecodeKernel {
    double split_waves = 1;  ///< blocks for an SM that splitting aims at
    bool old_bf16 = false;   ///< bf16 cache: blocks before the window start too, to no use
    Ps start = 0;            ///< launches of a call
    double hbm = 1;          ///< share of the bandwidth at which the cache is read
    double load_bytes = 64;  ///< bytes of the cache that an SM takes in per cycle
    Ps block = 0;            ///< time of an SM for a block of the tensor-core kernel, bf16 cache
    Ps fp8_block = 0;        ///< time of an SM for a block, fp8 cache or the vector kernel
    Ps head = 0;             ///< time of an SM for each query head of a block
    Ps merge = 0;            ///< time for each part that a sequence's cache may be split into
    double vector_rate = 0;  ///< elements an SM takes in per cycle in the kernel for one query head
                             ///< a key head; 0: no such kernel
    Ps vector_merge = 0;     ///< merge of the vector kernel, when its blocks are split
};

/// Latent attention of whole prompts (mla.cpp).
struct MlaPrefillKernel {
    bool absorbed = false;    ///< attends to the latent (576 wide) as all heads' one key and value
    std::int64_t rows = 128;  ///< queries (absorbed: queries times heads) of one block
    double tail = 0.5;        ///< share of the longest block that SMs wait for the last one
    double hbm = 0.9;         ///< share of the bandwidth that copies and quantisation reach
    double conversion = 1;    ///< absorbed, fp8 cache: values an SM converts to bf16 per cycle
    Ps start = 0;             ///< launches of a call
    Ps fp8_start = 0;         ///< further start with an fp8 cache: quantisation is one more kernel
    double pass_bytes = 0;    ///< bytes per token and head: RoPE, concatenation, copies
    double tensor = 1;        ///< share of the tensor cores' peak
    double softmax = 16;      ///< exponentials of an SM per cycle
    Ps block = 0;             ///< time of a block beyond its scores: fill of the pipeline, epilogue
};

/// Latent attention of one new token per sequence, absorbed (mla.cpp).
struct MlaDecodeKernel {
    std::int64_t tile = 64;      ///< heads of one block; fewer are padded to it
    std::int64_t few_heads = 0;  ///< most heads for which the kernel for few heads runs
    std::int64_t few_tile = 16;  ///< heads of one block of the kernel for few heads
    std::int64_t keys = 64;      ///< cached tokens of one step of a block
    bool converts = false;       ///< an fp8 cache is converted to bf16 as a whole in every call
    Ps start = 0;                ///< launches of a call
    double hbm = 1;              ///< share of the bandwidth at which a bf16 cache is read
    double hbm_fp8 = 1;          ///< share of the bandwidth at which an fp8 cache is read
    double tensor = 1;           ///< share of the tensor cores' bf16 peak
    double tensor_fp8 = 1;       ///< share of the tensor cores' fp8 peak
    double sm_bytes = 64;        ///< bytes of the cache that an SM takes in per cycle
    Ps split = 0;                ///< time to add one more split of a sequence to its sum
    double passes = 1;           ///< times that queries and outputs are moved, by RoPE and copies
    double conversion = 1;       ///< values an SM converts from fp8 to bf16 per cycle
    Ps conversion_start = 0;     ///< launches of the conversion
};

/// How a library cuts the experts' work into kernels (fused_moe.cpp).
enum class MoeStyle {
    cutlass,     ///< permute, product, activation, product, finalise
    trtllm_gen,  ///< rows gathered and activation applied inside the products, finalise
    triton,      ///< no permutation, slots of all tokens, activation, sum over the slots
};

/// Fused MoE of one number format.
struct MoeKernel {
    MoeStyle style = MoeStyle::cutlass;
    Ps start = 0;       ///< all launches
    Ps choice = 0;      ///< time for each of the top k: the router picks one after another
    Ps expert = 0;      ///< time for each local expert: set-up of its product
    Ps slot = 0;        ///< time for each (token, choice): sorting into experts
    double tensor = 1;  ///< share of the card's peak
    Ps tile = 0;        ///< prologue and epilogue of a tile
    Ps step = 0;        ///< time for 128 bytes of the inner dimension: latency of a dependent chain
    double hbm = 1;     ///< share of the bandwidth that products reach
    double stream = 0;  ///< bytes per cycle that an SM draws in; 0: what HBM gives
    double pass = 1;    ///< share of the bandwidth that passes over rows reach
};

struct KernelLibrary {
    GemmKernel gemm;
    GemmFormat gemm_bf16;
    GemmFormat gemm_fp8;
    GemmFormat gemm_fp8_block;
    GemmFormat gemm_nvfp4;
    PrefillKernel prefill;
    DecodeKernel decode;
    MlaPrefillKernel mla_prefill;
    MlaDecodeKernel mla_decode;
    MoeKernel moe_bf16;
    MoeKernel moe_fp8;
    MoeKernel moe_fp8_block;
    MoeKernel moe_nvfp4;
};

}  // namespace moehub
