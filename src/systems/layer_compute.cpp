// The kernels that every system runs.
#include "sim/gpu/gemm.hpp"
#include "systems/layer.hpp"

#include <algorithm>

namespace moehub::systems {
namespace {

constexpr bool kCold = true;  ///< the other experts' weights went through L2 before

GemmPlan plan(const Gpu& gpu, const GemmShape& shape, const GemmPlan* like) {
    if (shape.rows == 0) return {};
    return like == nullptr ? plan_gemm(gpu, shape) : plan_gemm_like(gpu, shape, *like);
}

GemmShape up_shape(const Layer& layer, std::int64_t rows) {
    const std::int64_t matrices = layer.input.model.gated ? 2 : 1;
    return {rows, layer.input.model.hidden, matrices * layer.inner(), kCold};
}

GemmShape down_shape(const Layer& layer, std::int64_t rows) {
    return {rows, layer.inner(), layer.input.model.hidden, kCold};
}

}  // namespace

GemmPlan Layer::plan_up(std::int64_t rows) const {
    return plan(input.machine.gpu, up_shape(*this, rows), nullptr);
}

GemmPlan Layer::plan_down(std::int64_t rows) const {
    return plan(input.machine.gpu, down_shape(*this, rows), nullptr);
}

GemmPlan Layer::plan_down_and_send(std::int64_t rows) const {
    GemmShape shape = down_shape(*this, rows);
    const double away = static_cast<double>(gpus_ - 1) / gpus_;
    // Of a GPU's experts only the last has nothing behind which its results could be sent.
    const double last = static_cast<double>(experts_.size()) / input.model.experts;
    shape.send_row = std::min(1.0, last) * away * static_cast<double>(row_bytes()) /
                     input.machine.link.bandwidth;
    return plan(input.machine.gpu, shape, nullptr);
}

GemmPlan Layer::plan_up_like(std::int64_t rows, const GemmPlan& like) const {
    return plan(input.machine.gpu, up_shape(*this, rows), &like);
}

GemmPlan Layer::plan_down_like(std::int64_t rows, const GemmPlan& like) const {
    return plan(input.machine.gpu, down_shape(*this, rows), &like);
}

Process Layer::route(GpuId gpu) {
    const std::int64_t count = tokens(gpu);
    const GemmPlan logits =
        plan_gemm(input.machine.gpu, {count, input.model.hidden, input.model.experts, kCold});
    co_await run_gemm(cards_[gpu], logits);
    co_await run_for(cards_[gpu], route_seconds(input.machine.gpu, count, input.model.experts));
}

Process Layer::run_shared(GpuId gpu) {
    const Model& model = input.model;
    if (model.shared_experts == 0) co_return;
    const std::int64_t count = tokens(gpu);
    const std::int64_t width = std::int64_t{model.shared_experts} * model.shared_ffn;
    const std::int64_t matrices = model.gated ? 2 : 1;
    const GemmPlan up =
        plan_gemm(input.machine.gpu, {count, model.hidden, matrices * width, kCold});
    const GemmPlan down = plan_gemm(input.machine.gpu, {count, width, model.hidden, kCold});
    co_await run_gemm(cards_[gpu], up, sim::Priority::low);
    co_await run_gemm(cards_[gpu], down, sim::Priority::low);
    for (std::uint32_t i = 0; i < count; ++i) books.add_shared(first_token(gpu) + i);
}

Process Layer::scale(GpuId gpu) {
    const std::int64_t results = std::int64_t{top_k()} * shards();
    const Traffic traffic =
        sum_traffic(tokens(gpu) * results, results, static_cast<double>(row_bytes()));
    co_await run_stream(cards_[gpu], traffic);
}

}  // namespace moehub::systems
