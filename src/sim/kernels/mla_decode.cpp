/// Decode of DeepSeek's latent attention, absorbed: a token of the cache is 576 values, key (576)
/// and value (its first 512) of all heads at once. A block takes a tile of heads of one sequence
/// and a part of the context, the same for all blocks; the parts are summed afterwards:
///
///     step    = keys · max(2 · tile · (576 + 512) / tensor rate of an SM,
///                          bytes of a cached token / (sm_bytes · clock))
///     blocks  = ⌈sequences · tiles · splits / SMs⌉ · ⌈steps / splits⌉ · step
///     sum     = splits · (split + 2 · its partial sums in fp32 / HBM)   with more than one
///     seconds = start + conversion + passes · (Q, O) / HBM
///               + min over splits of (max(blocks, cache / HBM) + sum)
///
/// The cache is read from HBM once, however many tiles of heads there are: their blocks run side by
/// side. It is taken to be cold (measured ones that fit into L2 are a little faster).
///
/// Hopper: FlashMLA / XQA (TensorRT-LLM) and FlashAttention 3 (SGLang) pad the heads to 64. SGLang
/// converts the whole fp8 cache to bf16 before every call, at the pace of the SMs and not of the
/// memory, so fp8 is there up to seven times slower than bf16. Blackwell, both engines:
/// TensorRT-LLM's generated kernels, one for up to 32 heads in tiles of 16 and one that pads to 128
/// (64 heads take half of the tensor cores' rate). With 32 heads each of two blocks takes in the
/// whole cache, which is slower than the 64 heads of the other kernel: the measurements say so, it
/// is how the library chooses, and the one place where more heads can take less time.
#include "sim/kernels/mla_decode.hpp"

#include "sim/kernels/kernel_memory.hpp"

#include <algorithm>

namespace moehub {
namespace {

constexpr double kKey = kMlaRank + kMlaRope;
constexpr double kValue = kMlaRank;  ///< a part of the key
constexpr double kBf16 = 2;          ///< bytes
constexpr double kFp8 = 1;
constexpr double kFp32 = 4;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// What does not depend on the number of splits.
struct Work {
    std::int64_t groups = 1;  ///< tiles of heads of all sequences
    std::int64_t steps = 1;   ///< of one sequence
    double step = 0;          ///< s
    double memory = 0;        ///< s, the cache from HBM
    double sum = 0;           ///< s to sum, per split
};

struct Split {
    double blocks = 0;  ///< s on the SMs
    double sum = 0;     ///< s to sum the splits
};

/// The best number of splits. Every number up to that of the SMs is a candidate whatever the shape:
/// the time of each grows with the shape, so that of the best does too.
Split best_split(const Work& work, std::int64_t sms) {
    const auto with = [&](std::int64_t splits) {
        const std::int64_t waves = ceil_div(work.groups * splits, sms);
        const std::int64_t steps = ceil_div(work.steps, splits);
        return Split{static_cast<double>(waves) * static_cast<double>(steps) * work.step,
                     splits > 1 ? static_cast<double>(splits) * work.sum : 0};
    };
    const auto seconds = [&](const Split& s) { return std::max(s.blocks, work.memory) + s.sum; };
    Split best = with(1);
    for (std::int64_t splits = 2; splits <= std::min(sms, work.steps); ++splits) {
        const Split next = with(splits);
        if (work.memory + next.sum >= seconds(best)) break;  // and more so with more splits
        if (seconds(next) < seconds(best)) best = next;
    }
    return best;
}

}  // namespace

KernelCost mla_decode(const Gpu& gpu, const MlaDecodeKernel& k, const MlaDecodeCall& shape) {
    const bool fp8_cache = shape.cache == NumberFormat::fp8;
    const bool in_fp8 = fp8_cache && !k.converts;
    const std::int64_t tile = shape.heads <= k.few_heads ? k.few_tile : k.tile;
    const auto batch = static_cast<double>(shape.batch);
    const auto heads = static_cast<double>(shape.heads);
    const auto keys = static_cast<double>(shape.context + 1);
    const double sms = gpu.sms;
    const double hbm = k.hbm * gpu.hbm_bandwidth;
    const double sm_flops =
        (in_fp8 ? k.tensor_fp8 * gpu.fp8_flops : k.tensor * gpu.bf16_flops) / sms;
    const double token_bytes = kKey * (in_fp8 ? kFp8 : kBf16);
    const double cache = batch * keys * token_bytes;
    const double partial = batch * heads * kValue * kFp32;  // of one split of all sequences

    Work work;
    work.groups = shape.batch * ceil_div(shape.heads, tile);
    work.steps = ceil_div(shape.context + 1, k.keys);
    work.step = static_cast<double>(k.keys) *
                std::max(2 * static_cast<double>(tile) * (kKey + kValue) / sm_flops,
                         token_bytes / (k.sm_bytes * gpu.clock));
    work.memory = cache / (in_fp8 ? k.hbm_fp8 * gpu.hbm_bandwidth : hbm);
    work.sum = to_seconds(k.split) + 2 * partial / hbm;  // written and read
    const Split split = best_split(work, gpu.sms);

    const double queries = k.passes * kBf16 * batch * heads * (kKey + kValue);
    KernelCost cost;
    cost.start = to_seconds(k.start);
    cost.tensor = split.blocks;
    cost.memory = work.memory;
    cost.other = split.sum + queries / hbm;
    cost.bytes = cache + queries;
    if (fp8_cache && k.converts) {
        cost.start += to_seconds(k.conversion_start);
        cost.other += batch * keys * kKey / (k.conversion * sms * gpu.clock);
        cost.bytes += batch * keys * kKey * (kFp8 + kBf16);
    }
    cost.seconds = cost.start + cost.other + std::max(cost.tensor, cost.memory);
    cost.peak = in_fp8 ? gpu.fp8_flops : gpu.bf16_flops;
    cost.flops = 2 * batch * heads * keys * (kKey + kValue);
    return cost;
}

}  // namespace moehub
