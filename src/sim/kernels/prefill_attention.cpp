/// Two kernels, one after the other:
///
///     seconds = start + pass + max(blocks, bytes / HBM)
///
/// **Pass**: reads Q, K and V, turns Q and K (RoPE), writes Q again and K and V into the cache. Its
/// threads go by query rows (a token's head); those of a key head do keys and values besides. So a
/// row costs cycles and every byte does, on all SMs together, or it is as fast as memory:
///
///     pass = max((rows · row_cycles + bytes / pass_bytes) / (SMs · clock), bytes / HBM)
///
/// **Blocks**: a block takes `query_tile` queries of one head over the keys they see, in steps of
/// 32 KB of keys (at most `most_keys`). A score is computed whether masked or not:
///
///     score   = 4 · head_dim / (tensor · FLOP/s of an SM) + softmax cycles / clock
///     blocks  = max(work of all / SMs + tail · longest, longest)
///
/// In a causal head the last block is the longest and heads are given out one after the other, so
/// SMs end apart by a part of it: `tail`. With a window, a block sees at most window + query_tile
/// − 1 keys, which touch that many steps plus, on average, the part by which they are not aligned.
///
/// Two facts of Hopper's kernels: with an fp8 cache the products are fp8 also where the model is
/// bf16; and their windowed fp8 kernels take about three times as long for a score, so that a
/// window may cost more than it saves (only fp8 output with heads of 128 does not).
#include "sim/kernels/kernels.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

constexpr double kHbmShare = 0.9;  ///< share of the datasheet's bandwidth: a plain copy
constexpr std::int64_t kBufferBytes =
    32768;  ///< bytes of keys in one step: what the kernels' buffers hold

bool fp8_cache(const PrefillCall& shape) {
    return shape.cache == NumberFormat::fp8;
}

/// Tokens of a sequence, the new ones included.
std::int64_t context_of(const PrefillCall& shape) {
    return std::max(shape.context, shape.tokens);
}

/// Scores of one head of one sequence that no mask hides.
double seen_scores(const PrefillCall& shape) {
    const auto tokens = static_cast<double>(shape.tokens);
    const auto context = static_cast<double>(context_of(shape));
    const double window = shape.window > 0 ? static_cast<double>(shape.window) : context;
    const double full = std::clamp(context - window, 0.0, tokens);  // queries that see a whole one
    return full * window + (tokens - full) * (context - tokens) +
           (tokens - full) * (tokens - full + 1) / 2;
}

/// Sum over i = 0 … count−1 of ⌊(step · i + first) / divisor⌋, in few operations.
std::int64_t sum_of_quotients(std::int64_t count, std::int64_t divisor, std::int64_t step,
                              std::int64_t first) {
    if (count <= 0) return 0;
    std::int64_t sum = (step / divisor) * (count * (count - 1) / 2) + (first / divisor) * count;
    step %= divisor;
    first %= divisor;
    const std::int64_t reached = step * count + first;
    if (reached >= divisor)
        sum += sum_of_quotients(reached / divisor, step, divisor, reached % divisor);
    return sum;
}

/// Steps over keys of all blocks of one head of one sequence, and of the longest block.
struct Steps {
    double all = 0;
    double longest = 0;
    std::int64_t blocks = 0;
};

Steps steps_of(const PrefillCall& shape, std::int64_t queries, std::int64_t keys) {
    Steps steps;
    const std::int64_t before = context_of(shape) - shape.tokens;
    steps.blocks = (shape.tokens + queries - 1) / queries;
    const double last = static_cast<double>((context_of(shape) - 1) / keys + 1);
    if (shape.window <= 0 || shape.window >= context_of(shape)) {
        const std::int64_t others = steps.blocks - 1;
        steps.all = static_cast<double>(
                        sum_of_quotients(others, keys, queries, before + queries - 1) + others) +
                    last;
        steps.longest = last;
        return steps;
    }
    const double aligned = static_cast<double>(std::gcd(queries, keys));
    const double most =
        1 + (static_cast<double>(queries + shape.window - 1) - aligned) / static_cast<double>(keys);
    // Blocks that end before the window is full see all keys before them.
    const std::int64_t full = (static_cast<std::int64_t>(most)) * keys;  // keys within `most` steps
    const std::int64_t early =
        std::clamp<std::int64_t>((full - before) / queries, 0, steps.blocks - 1);
    steps.longest = std::min(last, most);
    steps.all =
        static_cast<double>(sum_of_quotients(early, keys, queries, before + queries - 1) + early) +
        static_cast<double>(steps.blocks - 1 - early) * most + steps.longest;
    return steps;
}

/// Keys of a step: what fits a buffer, by 64.
std::int64_t step_keys(const PrefillCall& shape, const PrefillKernel& c) {
    const std::int64_t fit = kBufferBytes / (shape.head_dim * (fp8_cache(shape) ? 1 : 2));
    return std::clamp<std::int64_t>(fit / 64 * 64, 64, c.most_keys);
}

double score_seconds(const Gpu& gpu, const PrefillCall& shape, const PrefillKernel& c) {
    const double peak = (fp8_cache(shape) ? gpu.fp8_flops : gpu.bf16_flops) / gpu.sms;
    const double cycles = c.softmax + (fp8_cache(shape) ? c.fp8_softmax : 0);
    const double score =
        4 * static_cast<double>(shape.head_dim) / (c.tensor * peak) + cycles / gpu.clock;
    const bool windowed = shape.window > 0 && shape.window < context_of(shape);
    const bool quick = shape.format == NumberFormat::fp8 && shape.head_dim >= 128;
    return windowed && fp8_cache(shape) && !quick ? c.fp8_window * score : score;
}

}  // namespace

KernelCost prefill_attention(const Gpu& gpu, const PrefillKernel& c, const PrefillCall& shape) {
    const auto batch = static_cast<double>(shape.batch);
    const auto kv_heads = static_cast<double>(shape.kv_heads);
    const double cached = fp8_cache(shape) ? 1 : kBf16;
    const auto dim = static_cast<double>(shape.head_dim);
    const double rows =
        batch * static_cast<double>(shape.tokens) * static_cast<double>(shape.heads);
    const double kv_rows = 2 * batch * static_cast<double>(shape.tokens) * kv_heads;
    const double kv_seen = 2 * batch * static_cast<double>(context_of(shape)) * kv_heads;
    const double hbm = kHbmShare * gpu.hbm_bandwidth;

    const double pass_bytes = (rows + kv_rows) * dim * (kBf16 + cached);
    const double pass =
        std::max((rows * c.row_cycles + pass_bytes / c.pass_bytes) / (gpu.sms * gpu.clock),
                 pass_bytes / hbm);

    const std::int64_t keys = step_keys(shape, c);
    const Steps steps = steps_of(shape, c.query_tile, keys);
    const double step_scores = static_cast<double>(c.query_tile * keys);
    const double heads = batch * static_cast<double>(shape.heads);
    const double step = step_scores * score_seconds(gpu, shape, c);
    const double longest = steps.longest * step;
    const double blocks = std::max(heads * steps.all * step / gpu.sms + c.tail * longest, longest);

    const double bytes = dim * (rows * (cached + kBf16) + kv_seen * cached);
    KernelCost cost;
    cost.start = to_seconds(c.start);
    cost.other = pass;
    cost.tensor = blocks;
    cost.memory = bytes / hbm;
    cost.seconds = cost.start + cost.other + std::max(cost.tensor, cost.memory);
    cost.peak = fp8_cache(shape) ? gpu.fp8_flops : gpu.bf16_flops;
    cost.flops = 4 * dim * heads * seen_scores(shape);
    cost.bytes = pass_bytes + bytes;
    return cost;
}

}  // namespace moehub
