/// What the operators of measurements take, from their kernels (gemm.hpp, memory_ops.hpp,
/// transformer.hpp).
///
/// An operator replayed alone in a CUDA graph takes max(floor, replay + kernels): between the two
/// events the host needs the floor to send off any graph; a graph that outlasts this adds `replay`
/// to its kernels. Among others in a graph an operator takes its kernels alone.
#include "base/portable_math.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/transformer.hpp"

#include <moehub/predict.hpp>

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr std::int64_t kMostExtent = 1'000'000'000;  ///< most of any dimension
constexpr std::int64_t kMostGroups = 1'000'000;
constexpr double kLongest = 1e6;    ///< seconds; the clock counts to nine times that
constexpr std::int64_t kFanIn = 8;  ///< experts per token in gather_rows and sum8_rows

bool within(std::int64_t value, std::int64_t most = kMostExtent) {
    return value >= 1 && value <= most;
}

/// Nothing where there is no prediction, or one beyond the clock.
std::optional<Ps> time_of(std::optional<double> seconds) {
    if (!seconds || !(*seconds < kLongest)) return std::nullopt;
    return static_cast<Ps>(std::llround(*seconds * static_cast<double>(kSecond)));
}

std::optional<double> seconds(const Gpu& gpu, const Operator& op) {
    if (!within(op.rows)) return std::nullopt;
    if (op.op == "argsort") return sort_seconds(gpu, op.rows);
    if (!within(op.k)) return std::nullopt;
    const double width = kBf16 * static_cast<double>(op.k);
    if (op.op == "gather_rows") {
        const std::int64_t table = std::max<std::int64_t>(1, op.rows / kFanIn);
        return replayed_stream_seconds(gpu, gather_traffic(gpu, {op.rows, table, width}));
    }
    if (op.op == "sum8_rows")
        return replayed_stream_seconds(gpu, sum_traffic(op.rows, kFanIn, width));
    if (!within(op.n)) return std::nullopt;
    if (op.op == "gemm") return plan_seconds(gpu, plan_gemm(gpu, {op.rows, op.k, op.n}));
    const bool grouped = op.op == "grouped_gemm" && op.groups >= 1 && op.groups <= kMostGroups;
    if (!grouped || !(op.skew >= 0) || !std::isfinite(op.skew)) return std::nullopt;
    const auto rows = rows_per_group({op.groups, op.rows, op.max_rows, op.skew});
    return plan_seconds(gpu, plan_grouped_gemm(gpu, {rows, op.k, op.n}));
}

// Operators of a transformer layer as layers.csv measures them: replayed alone on a host in its
// slow state,
//
//     max(slow floor, slow replay + kernels),
//
// but attention backward called by autograd without a graph, on an idle card:
//
//     host steps · eager_launch + kernels,
//
// with further steps when query heads share keys, whose gradients are then summed. Forward with
// backward, the host is ahead of the card but for its first launch.

constexpr std::int64_t kMostSequence = 100'000'000;  ///< tokens, of batches and heads together less
constexpr double kBackwardSteps = 2.8;  ///< steps of the host before the kernels, in eager launches
constexpr double kSharedSteps = 1.5;    ///< further steps when heads share keys
constexpr int kAddedToItself = 2;       ///< tensors: the measured sums are too fast for two addends

double replayed(const Gpu& gpu, double kernels) {
    return std::max(to_seconds(gpu.kernels.slow_replay_floor),
                    to_seconds(gpu.kernels.slow_replay) + kernels);
}

/// Seconds at the lowered clock once it has run for long.
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

// Phases of a MoE layer in eager PyTorch, called on an idle card: the host issues the operators of
// a phase, the card begins with the first `eager_latency` later, and the phase ends with the later
// of the two,
//
//     max(steps · eager_launch, eager_latency + kernels).
//
// Planning asks the card for the largest expert (bincount), so the host waits for the sort: there
// its steps and the sort add up. Weights are read from HBM: other work went before.

constexpr std::int64_t kMostOfAPhase = 1'000'000;
// Steps of the host for a phase, in eager launches.
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
    const double width = kBf16 * static_cast<double>(phase.hidden);
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

// What training adds to a layer's operators, as eager PyTorch runs it on one card; fp32 but for
// the gradients that are accumulated.
//
// AdamW, fused: reads weight, gradient and both moments, writes all but the gradient, 28 bytes an
// element. An accumulation reads fp32 and bf16 and writes fp32, 10 bytes.
//
// A cross entropy passes over the logits three times forward (largest, sum, result) and writes as
// many; backward it clears the gradient, sums it, and reads it and the result once more to write
// its own. Two rows are underway on an SM, and a pass finds what the pass before has read in L2
// where all of them fit there.
//
//     adamw, cross entropy = host steps · eager_launch + kernels
//     accumulation         = max(slow floor, slow replay + kernel)

constexpr std::int64_t kMostElements = 1'000'000'000'000;
constexpr double kRowsOnSm = 2;   ///< blocks of 1,024 threads, a row each
constexpr double kAdamSteps = 1;  ///< steps of the host, in eager launches
constexpr double kLossSteps = 2;  ///< steps of the host, in eager launches: forward and backward

Traffic adamw_traffic(double elements) {
    return {.read = 4 * kFp32 * elements, .written = 3 * kFp32 * elements, .access = Access::mixed};
}

Traffic accumulate_traffic(double elements) {
    return {
        .read = (kFp32 + kBf16) * elements, .written = kFp32 * elements, .access = Access::casting};
}

/// `read` bytes of a row at first, `again` in later passes.
Traffic pass_over_rows(const Gpu& gpu, const TrainingOperator& op, double read, double again) {
    const auto rows = static_cast<double>(op.rows);
    const double underway = std::min(rows, kRowsOnSm * gpu.sms);
    const double near = l2_hit(gpu, underway * read);
    const double row = static_cast<double>(op.elements) / rows;
    return {.read = rows * (read + (1 - near) * again),
            .written = rows * row * kFp32,
            .access = Access::softmax,
            .again = rows * near * again};
}

double cross_entropy_seconds(const Gpu& gpu, const TrainingOperator& op) {
    const auto all = static_cast<double>(op.elements);
    const double row = kFp32 * all / static_cast<double>(op.rows);
    const Traffic clear{.written = kFp32 * all, .access = Access::softmax};
    return replayed_stream_seconds(gpu, pass_over_rows(gpu, op, row, 2 * row)) +
           replayed_stream_seconds(gpu, clear) +
           replayed_stream_seconds(gpu, pass_over_rows(gpu, op, 2 * row, row));
}

std::optional<double> seconds(const Gpu& gpu, const TrainingOperator& op) {
    const auto elements = static_cast<double>(op.elements);
    const double launch = to_seconds(gpu.overheads.eager_launch);
    if (!within(op.elements, kMostElements)) return std::nullopt;
    if (op.op == "adamw_fp32")
        return kAdamSteps * launch + replayed_stream_seconds(gpu, adamw_traffic(elements));
    if (op.op == "add_bf16_to_fp32")
        return replayed(gpu, replayed_stream_seconds(gpu, accumulate_traffic(elements)));
    if (op.op != "cross_entropy_fp32_fwd_bwd") return std::nullopt;
    if (op.rows < 1 || op.elements % op.rows != 0) return std::nullopt;
    return kLossSteps * launch + cross_entropy_seconds(gpu, op);
}

}  // namespace

std::optional<Ps> predict(const Gpu& gpu, const Operator& op) {
    const std::optional<double> kernels = seconds(gpu, op);
    if (!kernels) return std::nullopt;
    const std::optional<Ps> replayed = time_of(to_seconds(gpu.kernels.graph_replay) + *kernels);
    if (!replayed) return std::nullopt;
    return std::max(gpu.kernels.graph_replay_floor, *replayed);
}

std::optional<Ps> predict_layer(const Gpu& gpu, const LayerOperator& op) {
    return time_of(seconds(gpu, op));
}

std::optional<Ps> predict_eager(const Gpu& gpu, const EagerPhase& phase) {
    const bool sized = within(phase.tokens) && within(phase.rows) && within(phase.hidden) &&
                       within(phase.inner, kMostExtent / 2) && within(phase.experts, kMostOfAPhase);
    if (!sized) return std::nullopt;
    return time_of(seconds(gpu, phase));
}

std::optional<Ps> predict_training(const Gpu& gpu, const TrainingOperator& op) {
    return time_of(seconds(gpu, op));
}

}  // namespace moehub
