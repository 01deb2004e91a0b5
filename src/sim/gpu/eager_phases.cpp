/// Phases of a MoE layer in eager PyTorch, called on an idle card: the host issues the operators of
/// a phase, the card begins with the first `eager_latency` later, and the phase ends with the later
/// of the two,
///
///     max(steps · eager_launch, eager_latency + kernels).
///
/// Planning asks the card for the largest expert (bincount), so the host waits for the sort: there
/// its steps and the sort add up. Weights are read from HBM: other work went before.
#include "base/portable_math.hpp"
#include "sim/gpu/grouped_gemm.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/rows_per_group.hpp"

#include <moehub/operators.hpp>

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr std::int64_t kMost = 1'000'000'000;
constexpr std::int64_t kMostExperts = 1'000'000;
constexpr double kElement = 2;    ///< bytes of a bf16
constexpr double kLongest = 1e6;  ///< seconds
// Of the host, in eager launches.
constexpr double kRouteSteps = 1.5;
constexpr double kPlanSteps = 3.6;
constexpr double kCombineSteps = 2;

bool within(std::int64_t value, std::int64_t most = kMost) {
    return value >= 1 && value <= most;
}

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
