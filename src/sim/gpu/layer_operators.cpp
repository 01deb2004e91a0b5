/// Operators of a transformer layer as layers.csv measures them: replayed alone on a host in its
/// slow state,
///
///     max(slow floor, slow replay + kernels),
///
/// but attention backward called by autograd without a graph, on an idle card:
///
///     host steps · eager_launch + kernels,
///
/// with further steps when query heads share keys, whose gradients are then summed. Forward with
/// backward, the host is ahead of the card but for its first launch.
#include "base/portable_math.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/transformer.hpp"

#include <moehub/operators.hpp>

#include <algorithm>
#include <cmath>

namespace moehub {

namespace {

constexpr std::int64_t kMost = 1'000'000'000;        ///< of any dimension
constexpr std::int64_t kMostSequence = 100'000'000;  ///< tokens, of batches and heads together less
constexpr std::int64_t kMostGroups = 1'000'000;
constexpr double kLongest = 1e6;        ///< seconds; the clock counts to nine times that
constexpr double kBackwardSteps = 2.8;  ///< of the host before the kernels, in eager launches
constexpr double kSharedSteps = 1.5;    ///< further, when heads share keys
constexpr int kAddedToItself = 2;       ///< tensors: the measured sums are too fast for two addends

bool within(std::int64_t value, std::int64_t most = kMost) {
    return value >= 1 && value <= most;
}

double replayed(const Gpu& gpu, double kernels) {
    return std::max(to_seconds(gpu.kernels.slow_replay_floor),
                    to_seconds(gpu.kernels.slow_replay) + kernels);
}

/// At the lowered clock once it has run for long.
double long_run(const Gpu& gpu, decltype(attention_forward_seconds) seconds,
                const AttentionShape& shape, AttentionKernel kernel) {
    const double full = seconds(gpu, shape, kernel, 1);
    const double lowered = lowered_share(gpu, full);
    if (lowered == 0) return full;
    return full + lowered * (seconds(gpu, shape, kernel, gpu.kernels.attention_clock) - full);
}

std::optional<double> attention(const Gpu& gpu, const LayerOperator& op) {
    const bool flash2 = op.op.ends_with("_flash2");
    if (!flash2 && !op.op.ends_with("_cudnn")) return std::nullopt;
    const bool sized = within(op.batch, kMostGroups) && within(op.heads, kMostGroups) &&
                       within(op.kv_heads, op.heads) && within(op.seq, kMostSequence) &&
                       within(op.head_dim);
    if (!sized || op.heads % op.kv_heads != 0) return std::nullopt;
    AttentionShape shape;
    shape.batch = op.batch;
    shape.heads = op.heads;
    shape.kv_heads = op.kv_heads;
    shape.queries = shape.keys = op.seq;
    shape.qk_dim = shape.v_dim = op.head_dim;
    const auto kernel = flash2 ? AttentionKernel::flash2 : AttentionKernel::cudnn;
    const double launch = to_seconds(gpu.overheads.eager_launch);
    if (op.op.starts_with("attention_fwd_bwd_"))
        return launch + long_run(gpu, attention_forward_seconds, shape, kernel) +
               long_run(gpu, attention_backward_seconds, shape, kernel);
    if (op.op.starts_with("attention_fwd_"))
        return replayed(gpu, long_run(gpu, attention_forward_seconds, shape, kernel));
    const double steps = kBackwardSteps + (op.kv_heads < op.heads ? kSharedSteps : 0);
    return steps * launch + long_run(gpu, attention_backward_seconds, shape, kernel);
}

std::optional<double> matrices(const Gpu& gpu, const LayerOperator& op) {
    if (!within(op.n) || !within(op.groups, kMostGroups)) return std::nullopt;
    if (op.op == "router")  // its constants were found with the replay of a fast host
        return to_seconds(gpu.kernels.graph_replay) +
               (plan_seconds(gpu, plan_gemm(gpu, {op.rows, op.k, op.groups})) +
                route_seconds(gpu, op.rows, op.groups));
    if (op.op == "gemm_fp8") {
        GemmShape shape{op.rows, op.k, op.n};
        shape.fp8 = true;
        return replayed(gpu, plan_seconds(gpu, plan_gemm(gpu, shape)));
    }
    if (op.op != "grouped_gemm_fp8") return std::nullopt;
    GroupedShape shape{{}, op.k, op.n};
    shape.fp8 = true;
    shape.rows.assign(static_cast<std::size_t>(op.groups), op.rows / op.groups);
    for (std::int64_t i = 0; i < op.rows % op.groups; ++i)
        ++shape.rows[static_cast<std::size_t>(i)];
    return replayed(gpu, plan_seconds(gpu, plan_grouped_gemm(gpu, shape)));
}

std::optional<double> seconds(const Gpu& gpu, const LayerOperator& op) {
    if (op.op.starts_with("attention_fwd_") || op.op.starts_with("attention_bwd_"))
        return attention(gpu, op);
    if (!within(op.rows) || !within(op.k)) return std::nullopt;
    const double elements = static_cast<double>(op.rows) * static_cast<double>(op.k);
    const auto streamed = [&gpu](const Traffic& traffic) {
        return replayed(gpu, replayed_stream_seconds(gpu, traffic));
    };
    if (op.op == "rms_norm") return streamed(norm_traffic(gpu, op.rows, op.k, Norm::rms));
    if (op.op == "layer_norm") return streamed(norm_traffic(gpu, op.rows, op.k, Norm::layer));
    if (op.op == "residual_add") return streamed(residual_traffic(elements, kAddedToItself));
    if (op.op == "swiglu") return streamed(fused_activation_traffic(elements));
    if (op.op == "quantize_fp8_rows") return streamed(quantise_rows_traffic(op.rows, op.k));
    return matrices(gpu, op);
}

}  // namespace

std::optional<Ps> predict_layer(const Gpu& gpu, const LayerOperator& op) {
    const auto time = seconds(gpu, op);
    if (!time || !(*time < kLongest)) return std::nullopt;
    return static_cast<Ps>(std::llround(*time * static_cast<double>(kSecond)));
}

// Phases of a MoE layer in eager PyTorch, called on an idle card: the host issues the operators of
// a phase, the card begins with the first `eager_latency` later, and the phase ends with the later
// of the two,
//
//     max(steps · eager_launch, eager_latency + kernels).
//
// Planning asks the card for the largest expert (bincount), so the host waits for the sort: there
// its steps and the sort add up. Weights are read from HBM: other work went before.

namespace {

constexpr std::int64_t kMostExperts = 1'000'000;
constexpr double kElement = 2;  ///< bytes of a bf16
// Of the host, in eager launches.
constexpr double kRouteSteps = 1.5;
constexpr double kPlanSteps = 3.6;
constexpr double kCombineSteps = 2;

/// The fullest expert of a typical even draw.
std::int64_t fullest(const EagerPhase& phase) {
    const double mean = static_cast<double>(phase.rows) / static_cast<double>(phase.experts);
    const double above = std::sqrt(2 * portable_log(static_cast<double>(phase.experts)) * mean);
    return static_cast<std::int64_t>(std::llround(mean + above));
}

double grouped(const Gpu& gpu, const EagerPhase& phase, std::int64_t k, std::int64_t n) {
    const auto rows = rows_per_group({phase.experts, phase.rows, fullest(phase), 0});
    return plan_seconds(gpu, plan_grouped_gemm(gpu, {rows, k, n}));
}

double called(const Gpu& gpu, double steps, double kernels) {
    return std::max(steps * to_seconds(gpu.overheads.eager_launch),
                    to_seconds(gpu.overheads.eager_latency) + kernels);
}

std::optional<double> seconds(const Gpu& gpu, const EagerPhase& phase) {
    const std::string& name = phase.phase;
    const double width = kElement * static_cast<double>(phase.hidden);
    if (name == "route")
        return called(gpu, kRouteSteps, route_seconds(gpu, phase.tokens, phase.experts));
    if (name == "plan")
        return kPlanSteps * to_seconds(gpu.overheads.eager_launch) + sort_seconds(gpu, phase.rows);
    if (name == "permute")
        return called(
            gpu, 1,
            replayed_stream_seconds(gpu, gather_traffic(gpu, {phase.rows, phase.tokens, width})));
    if (name == "gemm1") return called(gpu, 1, grouped(gpu, phase, phase.hidden, 2 * phase.inner));
    if (name == "activation") {
        const double elements = static_cast<double>(phase.rows) * static_cast<double>(phase.inner);
        return called(gpu, 1,
                      replayed_stream_seconds(gpu, eager_activation_traffic(gpu, elements)));
    }
    if (name == "gemm2") return called(gpu, 1, grouped(gpu, phase, phase.inner, phase.hidden));
    if (name == "combine")
        return called(gpu, kCombineSteps, scatter_add_seconds(gpu, phase.rows, width));
    return std::nullopt;
}

}  // namespace

std::optional<Ps> predict_eager(const Gpu& gpu, const EagerPhase& phase) {
    const bool sized = within(phase.tokens) && within(phase.rows) && within(phase.hidden) &&
                       within(phase.inner, kMost / 2) && within(phase.experts, kMostExperts);
    if (!sized) return std::nullopt;
    const auto time = seconds(gpu, phase);
    if (!time || !(*time < kLongest)) return std::nullopt;
    return static_cast<Ps>(std::llround(*time * static_cast<double>(kSecond)));
}

}  // namespace moehub
