/// Kernels read the cache once and do little else:
///
///     seconds = start + merge + blocks + both(load, memory)      tensor-core kernel
///     seconds = start + merge + both(load + blocks, memory)      vector kernel
///     memory  = bytes / (hbm · HBM), of those that are not in the L2 from the call before
///     both(a, b) = (a⁴ + b⁴)^¼: the longer one, and somewhat more where they come close
///
/// **Tensor-core kernel** (query heads share a key head; on Blackwell always). A block has the
/// query heads of one key head of one sequence and a part of its cache. The library's rule splits
/// n tokens into the smallest of n / 128, √(8 · n / 128) and as many as give every SM
/// `split_waves` blocks: parts are real numbers here, so that more work is never quicker.
///
///     blocks = (block + head · heads of a key head) · max(1, blocks / SMs)
///     load   = bytes / (load_bytes · clock · SMs that have a block)
///     merge  = merge · parts by the first two limits
///
/// Hopper's kernel for bf16 caches counts parts by the whole context though a window hides most of
/// it: those blocks start, find nothing to do and cost as much as others.
///
/// **Vector kernel** (Hopper, a key head for each query head). A block has one head and the SM for
/// itself, so heads run in waves of SMs. Fewer heads than SMs are split into ⌈SMs / heads⌉ parts,
/// at least 32,768 elements of keys each. That is nearly always a few more blocks than SMs:
/// a second wave. (Where SMs / heads is whole there is none, and the kernel is up to twice as fast
/// as here; but then one head fewer takes longer than one more.)
///
///     load   = waves / parts · 2 · head_dim · tokens / (vector_rate · clock)
///     merge  = vector_merge, where the tokens are enough for parts
///
/// Queries and outputs are left out of memory: they are a few kilobytes that stay in the L2.
#include "sim/kernels/kernels.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr double kSplitTokens = 128;    ///< least tokens of a part
constexpr double kVectorSplit = 32768;  ///< elements of keys of a part of the vector kernel
constexpr double kL2Kept = 0.4;  ///< share of L2: a cache up to this stays; of twice this, nothing

bool fp8_cache(const DecodeCall& shape) {
    return shape.cache == NumberFormat::fp8;
}

double times(std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
}

/// Tokens of a sequence, the new one included.
std::int64_t tokens_of(const DecodeCall& shape) {
    return shape.context + 1;
}

/// Time of two limits at work together: the longer, and somewhat more where they are alike.
double both(double a, double b) {
    const double most = std::max(a, b);
    if (most <= 0) return 0;
    const double less = std::min(a, b) / most;
    return most * std::sqrt(std::sqrt(1 + less * less * less * less));
}

struct DecodeWork {
    double tokens = 0;   ///< tokens that the new one sees
    double context = 0;  ///< tokens of the sequence
    double bytes = 0;    ///< bytes of the cache, read once
    double memory = 0;   ///< seconds of reading memory
};

DecodeWork work_of(const Gpu& gpu, const DecodeCall& shape, const DecodeKernel& c) {
    DecodeWork work;
    work.context = static_cast<double>(tokens_of(shape));
    work.tokens = shape.window > 0 ? static_cast<double>(std::min(shape.window, tokens_of(shape)))
                                   : work.context;
    work.bytes = 2 * times(shape.batch, shape.kv_heads) * static_cast<double>(shape.head_dim) *
                 work.tokens * (fp8_cache(shape) ? 1 : 2);
    const double kept = kL2Kept * static_cast<double>(gpu.l2_capacity);
    const double missed = std::clamp(work.bytes / kept - 1, 0.0, 1.0);
    work.memory = missed * work.bytes / (c.hbm * gpu.hbm_bandwidth);
    return work;
}

KernelCost tensor_kernel(const Gpu& gpu, const DecodeCall& shape, const DecodeKernel& c,
                         const DecodeWork& work) {
    const double pairs = times(shape.batch, shape.kv_heads);
    const double group = static_cast<double>(shape.heads) / static_cast<double>(shape.kv_heads);
    const double split = c.old_bf16 && !fp8_cache(shape) ? work.context : work.tokens;
    const double tiles = split / kSplitTokens;
    const double most = std::max(1.0, std::min(tiles, std::sqrt(8 * tiles)));
    const double parts = std::max(1.0, std::min(most, c.split_waves * gpu.sms / pairs));
    const double waves = std::max(1.0, pairs * parts / gpu.sms);
    const double busy =  // SMs that have something to load
        std::min<double>(gpu.sms, pairs * std::max(1.0, parts * work.tokens / split));

    KernelCost cost;
    cost.start = to_seconds(c.start);
    cost.other = to_seconds(c.merge) * most;
    const double blocks =
        waves * (to_seconds(fp8_cache(shape) ? c.fp8_block : c.block) + to_seconds(c.head) * group);
    const double load = work.bytes / (c.load_bytes * gpu.clock * busy);
    cost.tensor = blocks + load;
    cost.memory = work.memory;
    cost.seconds = cost.start + cost.other + blocks + both(load, cost.memory);
    return cost;
}

KernelCost vector_kernel(const Gpu& gpu, const DecodeCall& shape, const DecodeKernel& c,
                         const DecodeWork& work) {
    const double heads = times(shape.batch, shape.heads);
    const auto dim = static_cast<double>(shape.head_dim);
    const double parts_by_length = std::max(1.0, work.tokens * dim / kVectorSplit);
    double turns = std::ceil(heads / gpu.sms);  // waves / parts
    if (heads < gpu.sms)
        turns = std::max(std::min(1.0, 2 / std::ceil(gpu.sms / heads)), 1 / parts_by_length);

    KernelCost cost;
    cost.start = to_seconds(c.start);
    cost.other = parts_by_length > 1 ? to_seconds(c.vector_merge) : 0;
    cost.tensor = turns * 2 * dim * work.tokens / (c.vector_rate * gpu.clock) +
                  to_seconds(c.fp8_block) * std::max(1.0, heads / gpu.sms);
    cost.memory = work.memory;
    cost.seconds = cost.start + cost.other + both(cost.tensor, cost.memory);
    return cost;
}

}  // namespace

KernelCost decode_attention(const Gpu& gpu, const DecodeKernel& c, const DecodeCall& shape) {
    const DecodeWork work = work_of(gpu, shape, c);
    const bool vector = c.vector_rate > 0 && shape.heads == shape.kv_heads;
    KernelCost cost =
        vector ? vector_kernel(gpu, shape, c, work) : tensor_kernel(gpu, shape, c, work);
    cost.peak = gpu.bf16_flops;
    cost.flops =
        4 * times(shape.batch, shape.heads) * static_cast<double>(shape.head_dim) * work.tokens;
    cost.bytes = work.memory * c.hbm * gpu.hbm_bandwidth;
    return cost;
}

}  // namespace moehub
