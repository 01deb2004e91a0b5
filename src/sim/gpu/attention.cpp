/// Both libraries give a thread block 128 queries of one head and let it pass over the keys they
/// see, 128 at a time; on the way back a block holds 128 keys and passes over the queries that saw
/// them. The matrices are multiplied at the rate of the SM's tensor cores (`flash2`: of the older
/// instructions, a share of it), and the softmax of a score takes its time after that:
///
///     block = start of a block + scores · (flops of a score / tensor rate + 1 / softmax rate)
///     forward  = start + max(blocks on SMs, (Q, K, V, O) / HBM)
///     backward = start + blocks on SMs + passes · bytes of Q / HBM
///
/// Scores are counted by whole squares of 128, masked ones on the diagonal too. Of causal heads the
/// blocks are unequal; they are given out head by head, the short ones first, to whichever SM is
/// free, and the last long ones leave SMs idle. On the way back the first keys, which all queries
/// saw, are the long blocks: those go first and the SMs end together. There, small kernels sum O ·
/// dO and clear, collect and convert the gradient of Q, which several blocks add to: `passes` over
/// memory.
#include "sim/gpu/tile.hpp"
#include "sim/gpu/transformer.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace moehub {
namespace {

constexpr std::int64_t kStep = 128;            ///< queries, and keys, of one step
constexpr std::int64_t kMostBlocks = 1 << 15;  ///< blocks given out singly; more: at their mean

/// What one of the libraries reaches.
struct LibraryReach {
    double tensor = 1;   ///< share of the SM's peak
    double block = 0;    ///< seconds of a block beyond its scores
    double softmax = 0;  ///< scores/s of one SM
};

LibraryReach reach_of(const Gpu& gpu, AttentionKernel kernel, bool forward) {
    const Kernels& k = gpu.kernels;
    if (kernel == AttentionKernel::cudnn)
        return {1, to_seconds(k.attention_block),
                forward ? k.attention_softmax : k.attention_back_softmax};
    return {k.flash2_tensor, to_seconds(k.flash2_block),
            forward ? k.flash2_softmax : k.flash2_back_softmax};
}

/// Steps over the keys of every block of one head; backward they are the same squares, turned.
std::vector<double> steps_of(const AttentionShape& shape) {
    std::vector<double> steps;
    const std::int64_t before = shape.keys - shape.queries;
    for (std::int64_t first = 0; first < shape.queries; first += kStep) {
        const std::int64_t end = std::min(first + kStep, shape.queries);
        const std::int64_t high = shape.causal ? before + end : shape.keys;
        const std::int64_t low =
            shape.window > 0 ? std::max<std::int64_t>(0, before + first + 1 - shape.window) : 0;
        steps.push_back(static_cast<double>((high - 1) / kStep + 1 - low / kStep));
    }
    return steps;
}

/// Blocks of `heads` equal heads, in order, each to the SM that is free first.
double spread(const std::vector<double>& head, std::int64_t heads, int sms) {
    const auto blocks = static_cast<std::int64_t>(head.size());
    const std::int64_t given = std::min(heads, std::max<std::int64_t>(1, kMostBlocks / blocks));
    std::priority_queue<double, std::vector<double>, std::greater<>> free;
    for (int sm = 0; sm < sms; ++sm) free.push(0);
    double end = 0;
    for (std::int64_t i = 0; i < given; ++i)
        for (const double block : head) {
            const double done = free.top() + block;
            free.pop();
            free.push(done);
            end = std::max(end, done);
        }
    double work = 0;
    for (const double block : head) work += block;
    return end + static_cast<double>(heads - given) * work / sms;
}

/// Seconds of a score at the full clock.
double score_seconds(const Gpu& gpu, const LibraryReach& reach, double flops) {
    return flops / (reach.tensor * gpu.bf16_flops / gpu.sms) + 1 / reach.softmax;
}

/// Blocks of all heads in the order of `steps`, on all SMs.
double blocks_seconds(const Gpu& gpu, const AttentionShape& shape, std::vector<double> steps,
                      double block, double score) {
    for (double& one : steps) one = block + one * kStep * kStep * score;
    return spread(steps, shape.batch * shape.heads, gpu.sms);
}

}  // namespace

double attention_forward_seconds(const Gpu& gpu, const AttentionShape& shape,
                                 AttentionKernel kernel, double clock) {
    const auto qk = static_cast<double>(shape.qk_dim);
    const auto v = static_cast<double>(shape.v_dim);
    const double tokens = static_cast<double>(shape.batch) *
                          (static_cast<double>(shape.heads) * static_cast<double>(shape.queries) +
                           static_cast<double>(shape.kv_heads) * static_cast<double>(shape.keys));
    const double bytes = kBf16 * tokens * (qk + v);
    const double memory =
        (1 - l2_hit(gpu, bytes)) * bytes / (gpu.kernels.hbm_efficiency * gpu.hbm_bandwidth);
    const LibraryReach reach = reach_of(gpu, kernel, true);
    const double blocks = blocks_seconds(gpu, shape, steps_of(shape), reach.block,
                                         score_seconds(gpu, reach, 2 * (qk + v)) / clock);
    return to_seconds(gpu.kernels.attention_start) + std::max(blocks, memory);
}

double attention_backward_seconds(const Gpu& gpu, const AttentionShape& shape,
                                  AttentionKernel kernel, double clock) {
    const auto qk = static_cast<double>(shape.qk_dim);
    const auto v = static_cast<double>(shape.v_dim);
    const double tokens = static_cast<double>(shape.batch * shape.heads) *
                          static_cast<double>(shape.queries + shape.keys) / 2;
    const double passes = kernel == AttentionKernel::cudnn ? gpu.kernels.attention_back_passes
                                                           : gpu.kernels.flash2_back_passes;
    const double memory =
        passes * kBf16 * tokens * (qk + v) / 2 / (gpu.kernels.hbm_efficiency * gpu.hbm_bandwidth);
    // Scores and the gradients of Q and K have the depth of a query, those of P and V of a value.
    const LibraryReach reach = reach_of(gpu, kernel, false);
    std::vector<double> steps = steps_of(shape);
    std::reverse(steps.begin(), steps.end());
    const double blocks = blocks_seconds(gpu, shape, std::move(steps), reach.block,
                                         score_seconds(gpu, reach, 2 * (3 * qk + 2 * v)) / clock);
    return to_seconds(gpu.kernels.attention_start) + blocks + memory;
}

}  // namespace moehub
