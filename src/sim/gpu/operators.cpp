/// An operator replayed alone in a CUDA graph takes max(floor, replay + kernels): between the two
/// events the host needs the floor to send off any graph; a graph that outlasts this adds `replay`
/// to its kernels. Among others in a graph an operator takes its kernels alone.
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/grouped_gemm.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "sim/gpu/rows_per_group.hpp"

#include <moehub/operators.hpp>

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr std::int64_t kMostRows = 1'000'000'000;  ///< of any dimension
constexpr std::int64_t kMostGroups = 1'000'000;
constexpr std::int64_t kFanIn = 8;  ///< experts per token in gather_rows and sum8_rows
constexpr double kElement = 2;      ///< bytes of a bf16
constexpr double kLongest = 1e6;    ///< seconds; the clock counts to nine times that

bool within(std::int64_t value) {
    return value >= 1 && value <= kMostRows;
}

std::optional<double> kernel_seconds(const Gpu& gpu, const Operator& op) {
    if (!within(op.rows)) return std::nullopt;
    if (op.op == "argsort") return sort_seconds(gpu, op.rows);
    if (!within(op.k)) return std::nullopt;
    const double width = kElement * static_cast<double>(op.k);
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

}  // namespace

std::optional<Ps> predict(const Gpu& gpu, const Operator& op) {
    const std::optional<double> seconds = kernel_seconds(gpu, op);
    if (!seconds) return std::nullopt;
    const double replay = to_seconds(gpu.kernels.graph_replay) + *seconds;
    if (!(replay < kLongest)) return std::nullopt;
    const auto replayed = static_cast<Ps>(std::llround(replay * static_cast<double>(kSecond)));
    return std::max(gpu.kernels.graph_replay_floor, replayed);
}

}  // namespace moehub
