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
#include "sim/kernels/mla_prefill.hpp"

#include "sim/kernels/kernel_memory.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr double kLatent = kMlaRank;
constexpr double kRope = kMlaRope;
constexpr double kHeadKey = kMlaNope + kMlaRope;  ///< of one head, expanded
constexpr double kHeadValue = kMlaNope;
constexpr double kKeyStep = 128;  ///< keys of one step of a block
constexpr double kBf16 = 2;       ///< bytes
constexpr double kFp8 = 1;

/// The blocks of a call: all alike but for the keys they see.
struct Blocks {
    double count = 0;
    double scores = 0;   ///< of all of them
    double longest = 0;  ///< scores of the one that sees all keys
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
    const double key = k.absorbed ? kLatent + kRope : kHeadKey;
    const double value = k.absorbed ? kLatent : kHeadValue;
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
        const double values = tokens * (kLatent + kRope);
        cost.other += values / (k.conversion * sms * gpu.clock);
        passes += values * (kBf16 + kFp8);
    }
    cost.seconds = cost.start + cost.other + std::max(cost.tensor, cost.memory);
    cost.peak = in_fp8 ? gpu.fp8_flops : gpu.bf16_flops;
    cost.flops = token_heads * static_cast<double>(shape.tokens + 1) * (key + value);
    cost.bytes = attended + passes;
    return cost;
}

}  // namespace moehub
