/// Prefill of DeepSeek's latent attention. A block takes `rows` queries of one head and passes over
/// the keys they see, 128 at a time; half of the squares are above the diagonal and skipped. The
/// matrices and the exponentials of different queries run at the same time, the slower one decides:
///
///     score   = max(2 · (key width + value width) / tensor rate of an SM, 1 / softmax rate)
///     blocks  = Σ (block + rows · keys · score) / SMs + tail · longest block, ≥ longest block
///     seconds = start + passes / HBM + max(blocks, (Q, K, V, O) / HBM)
///
/// TensorRT-LLM, and SGLang on Blackwell (which calls TensorRT-LLM's kernels), expand the latent:
/// keys of 192, values of 128, per head. With an fp8 cache Q, K and V are first quantised (one more
/// kernel and pass), then multiplied at the fp8 rate: slower for short prompts, faster for long.
/// SGLang on Hopper runs FlashAttention 3 *absorbed*: keys of 576, values of 512, shared by all
/// heads, whose queries are packed into the 64 rows of a block: 3.4 times the FLOPs. It converts
/// an fp8 cache to bf16 first and multiplies in bf16.
///
/// The masks are counted as whole squares of 128 keys, which is why a prompt of 128 costs twice its
/// useful FLOPs.
#include "sim/kernels/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr double kHeadKey = kMlaNope + kMlaRope;  ///< width of a key of one head, expanded
constexpr double kHeadValue = kMlaNope;
constexpr double kKey = kMlaKey;     ///< width of a key of all heads, absorbed
constexpr double kValue = kMlaRank;  ///< width of a value of all heads, a part of the key
constexpr double kKeyStep = 128;     ///< keys of one step of a block

/// The blocks of a call: all alike but for the keys they see.
struct Blocks {
    double count = 0;
    double scores = 0;   ///< scores of all blocks
    double longest = 0;  ///< scores of the block that sees all keys
};

Blocks blocks_of(const MlaPrefillCall& shape, const MlaPrefillKernel& k) {
    const auto tokens = static_cast<double>(shape.tokens);
    const auto heads = static_cast<double>(shape.heads);
    const auto rows = static_cast<double>(k.rows);
    const double packed = k.absorbed ? heads : 1;  // heads that share a block's rows
    const double groups = static_cast<double>(shape.batch) * heads / packed;
    const double keys = std::ceil(tokens / kKeyStep) * kKeyStep;
    const double first = std::min(keys, std::max(kKeyStep, rows / packed));  // keys of the shortest
    Blocks blocks;
    blocks.count = groups * std::ceil(tokens * packed / rows);
    blocks.scores = blocks.count * rows * (first + keys) / 2;
    blocks.longest = rows * keys;
    return blocks;
}

}  // namespace

KernelCost mla_prefill(const Gpu& gpu, const MlaPrefillKernel& k, const MlaPrefillCall& shape) {
    const bool fp8_cache = shape.cache == NumberFormat::fp8;
    const bool in_fp8 = fp8_cache && !k.absorbed;
    const double key = k.absorbed ? kKey : kHeadKey;
    const double value = k.absorbed ? kValue : kHeadValue;
    const double sms = gpu.sms;
    const double sm_flops = k.tensor * (in_fp8 ? gpu.fp8_flops : gpu.bf16_flops) / sms;
    const double hbm = k.hbm * gpu.hbm_bandwidth;

    const double block = to_seconds(k.block);
    const Blocks blocks = blocks_of(shape, k);
    const double score = std::max(2 * (key + value) / sm_flops, 1 / (k.softmax * gpu.clock));
    const double longest = block + blocks.longest * score;
    const double mean = (blocks.count * block + blocks.scores * score) / sms;

    const auto tokens = static_cast<double>(shape.batch) * static_cast<double>(shape.tokens);
    const double token_heads = tokens * static_cast<double>(shape.heads);
    const double inputs = k.absorbed ? kBf16 * (token_heads * key + tokens * key)
                                     : (in_fp8 ? kFp8 : kBf16) * token_heads * (2 * key + value);
    const double attended = inputs + kBf16 * token_heads * value;
    double passes = token_heads * k.pass_bytes;
    if (in_fp8) passes += token_heads * (kBf16 + kFp8) * (2 * key + value);

    KernelCost cost;
    cost.start = to_seconds(k.start + (fp8_cache ? k.fp8_start : 0));
    cost.tensor = std::max(longest, mean + k.tail * longest);
    cost.memory = attended / hbm;
    cost.other = passes / hbm;
    if (k.absorbed && fp8_cache) {
        const double values = tokens * kKey;
        cost.other += values / (k.conversion * sms * gpu.clock);
        passes += values * (kBf16 + kFp8);
    }
    cost.seconds = cost.start + cost.other + std::max(cost.tensor, cost.memory);
    cost.peak = in_fp8 ? gpu.fp8_flops : gpu.bf16_flops;
    cost.flops = token_heads * static_cast<double>(shape.tokens + 1) * (key + value);
    cost.bytes = attended + passes;
    return cost;
}

// Decode of DeepSeek's latent attention, absorbed: a token of the cache is 576 values, key (576)
// and value (its first 512) of all heads at once. A block takes a tile of heads of one sequence
// and a part of the context, the same for all blocks; the parts are summed afterwards:
//
//     step    = keys · max(2 · tile · (576 + 512) / tensor rate of an SM,
//                          bytes of a cached token / (sm_bytes · clock))
//     blocks  = ⌈sequences · tiles · splits / SMs⌉ · ⌈steps / splits⌉ · step
//     sum     = splits · (split + 2 · its partial sums in fp32 / HBM)   with more than one
//     seconds = start + conversion + passes · (Q, O) / HBM
//               + min over splits of (max(blocks, cache / HBM) + sum)
//
// The cache is read from HBM once, however many tiles of heads there are: their blocks run side by
// side. It is taken to be cold (measured ones that fit into L2 are a little faster).
//
// Hopper: FlashMLA / XQA (TensorRT-LLM) and FlashAttention 3 (SGLang) pad the heads to 64. SGLang
// converts the whole fp8 cache to bf16 before every call, at the pace of the SMs and not of the
// memory, so fp8 is there up to seven times slower than bf16. Blackwell, both engines:
// TensorRT-LLM's generated kernels, one for up to 32 heads in tiles of 16 and one that pads to 128
// (64 heads take half of the tensor cores' rate). With 32 heads each of two blocks takes in the
// whole cache, which is slower than the 64 heads of the other kernel: the measurements say so, it
// is how the library chooses, and the one place where more heads can take less time.

namespace {

/// What does not depend on the number of splits.
struct MlaWork {
    std::int64_t groups = 1;  ///< tiles of heads of all sequences
    std::int64_t steps = 1;   ///< steps over the context of one sequence
    double step = 0;          ///< seconds of a step
    double memory = 0;        ///< seconds to read the cache from HBM
    double sum = 0;           ///< seconds to sum, per split
};

struct Split {
    double blocks = 0;  ///< seconds of the blocks on the SMs
    double sum = 0;     ///< seconds to sum the splits
};

/// The best number of splits. Every number up to that of the SMs is a candidate whatever the shape:
/// the time of each grows with the shape, so that of the best does too.
Split best_split(const MlaWork& work, std::int64_t sms) {
    const auto with = [&](std::int64_t splits) {
        const std::int64_t waves = pieces_of(work.groups * splits, sms);
        const std::int64_t steps = pieces_of(work.steps, splits);
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
    const double partial = batch * heads * kValue * kFp32;  // bytes of one split of all sequences

    MlaWork work;
    work.groups = shape.batch * pieces_of(shape.heads, tile);
    work.steps = pieces_of(shape.context + 1, k.keys);
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
