/// What training adds to a layer's operators, as eager PyTorch runs it on one card; fp32 but for
/// the gradients that are accumulated.
///
/// AdamW, fused: reads weight, gradient and both moments, writes all but the gradient, 28 bytes an
/// element. An accumulation reads fp32 and bf16 and writes fp32, 10 bytes.
///
/// A cross entropy passes over the logits three times forward (largest, sum, result) and writes as
/// many; backward it clears the gradient, sums it, and reads it and the result once more to write
/// its own. Two rows are underway on an SM, and a pass finds what the pass before has read in L2
/// where all of them fit there.
///
///     adamw, cross entropy = host steps · eager_launch + kernels
///     accumulation         = max(slow floor, slow replay + kernel)
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/tile.hpp"

#include <moehub/operators.hpp>

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr double kFp32 = 4;  ///< bytes
constexpr double kBf16 = 2;
constexpr std::int64_t kMost = 1'000'000'000'000;  ///< elements
constexpr double kLongest = 1e6;                   ///< seconds; the clock counts to nine times that
constexpr double kRowsOnSm = 2;                    ///< blocks of 1,024 threads, a row each
constexpr double kAdamSteps = 1;                   ///< of the host, in eager launches
constexpr double kLossSteps = 2;                   ///< forward and backward

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
    if (op.elements < 1 || op.elements > kMost) return std::nullopt;
    if (op.op == "adamw_fp32")
        return kAdamSteps * launch + replayed_stream_seconds(gpu, adamw_traffic(elements));
    if (op.op == "add_bf16_to_fp32")
        return std::max(to_seconds(gpu.kernels.slow_replay_floor),
                        to_seconds(gpu.kernels.slow_replay) +
                            replayed_stream_seconds(gpu, accumulate_traffic(elements)));
    if (op.op != "cross_entropy_fp32_fwd_bwd") return std::nullopt;
    if (op.rows < 1 || op.elements % op.rows != 0) return std::nullopt;
    return kLossSteps * launch + cross_entropy_seconds(gpu, op);
}

}  // namespace

std::optional<Ps> predict_training(const Gpu& gpu, const TrainingOperator& op) {
    const auto time = seconds(gpu, op);
    if (!time || !(*time < kLongest)) return std::nullopt;
    return static_cast<Ps>(std::llround(*time * static_cast<double>(kSecond)));
}

}  // namespace moehub
