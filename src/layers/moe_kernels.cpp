// The kernels that every system runs.
#include "layers/moe_layer.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/tile.hpp"

#include <algorithm>

namespace moehub::layers {
namespace {

/// A serving engine's library has kernels of its own for experts.
GemmPlan plan(const MoeLayer& layer, const Gpu& gpu, const GemmShape& shape, const GemmPlan* like) {
    if (shape.rows == 0) return {};
    if (gpu.library != "torch" && !layer.backward()) {
        ExpertShape experts{{shape.rows}, shape.k, shape.n, layer.system.expert_format};
        experts.stored = shape.stored;
        experts.beside = shape.beside;
        experts.tile_rows = like != nullptr ? like->tile_rows : shape.tile_rows;
        return plan_expert_gemm(gpu, experts);
    }
    return like == nullptr ? plan_gemm(gpu, shape) : plan_gemm_like(gpu, shape, *like);
}

/// Rows of hidden width to rows of inner width. Backward, these are gradients through the second
/// matrix, of which there is one.
GemmShape up_shape(const MoeLayer& layer, std::int64_t rows) {
    const std::int64_t matrices = layer.input.model.gated && !layer.backward() ? 2 : 1;
    GemmShape shape{rows, layer.input.model.hidden, matrices * layer.inner(), kCold};
    const FusedEnd end = layer.end_of_up(layer.inner());
    shape.stored = end.stored;
    shape.beside = end.read;
    shape.fp8 = layer.system.narrow_experts();
    return shape;
}

/// Rows of inner width to rows of hidden width; backward through gate and up.
GemmShape down_shape(const MoeLayer& layer, std::int64_t rows) {
    const std::int64_t matrices = layer.input.model.gated && layer.backward() ? 2 : 1;
    GemmShape shape{rows, matrices * layer.inner(), layer.input.model.hidden, kCold};
    shape.fp8 = layer.system.narrow_experts();
    return shape;
}

Process run_gradient(sim::Card& card, GemmPlan plan, sim::CounterId done) {
    co_await run_gemm(card, plan, KernelName::gradients, sim::Priority::low);
    card.endpoint.increase(done);
}

}  // namespace

GemmPlan MoeLayer::plan_up(std::int64_t rows) const {
    if (!options.compute) return {};
    return plan(*this, input.machine.gpu, up_shape(*this, rows), nullptr);
}

GemmPlan MoeLayer::plan_up_on(std::int64_t rows_here, int sms) const {
    if (!options.compute) return {};
    return plan(*this, with_sms(input.machine.gpu, sms), up_shape(*this, rows_here), nullptr);
}

GemmPlan MoeLayer::plan_down(std::int64_t rows) const {
    if (!options.compute) return {};
    return plan(*this, input.machine.gpu, down_shape(*this, rows), nullptr);
}

GemmPlan MoeLayer::plan_down_part(std::int64_t rows, int parts, int sms) const {
    if (!options.compute) return {};
    GemmShape shape = down_shape(*this, rows);
    shape.n = (shape.n - 1) / parts + 1;
    return plan(*this, with_sms(input.machine.gpu, sms), shape, nullptr);
}

GemmPlan MoeLayer::plan_down_and_send(std::int64_t rows, std::int64_t tile_rows) const {
    GemmShape shape = down_shape(*this, rows);
    shape.tile_rows = tile_rows;
    const double away = static_cast<double>(gpus.count() - 1) / gpus.count();
    // A GPU's last expert alone has nothing behind which its results could be sent.
    const double last = static_cast<double>(experts_.size()) / input.model.experts;
    shape.send_row = std::min(1.0, last) * away * static_cast<double>(combine_bytes()) /
                     input.machine.link.bandwidth;
    return plan(*this, input.machine.gpu, shape, nullptr);
}

GemmPlan MoeLayer::plan_up_like(std::int64_t rows, const GemmPlan& like) const {
    return plan(*this, input.machine.gpu, up_shape(*this, rows), &like);
}

GemmPlan MoeLayer::plan_down_like(std::int64_t rows, const GemmPlan& like) const {
    return plan(*this, input.machine.gpu, down_shape(*this, rows), &like);
}

FusedEnd MoeLayer::end_of_up(std::int64_t width) const {
    if (!system.fused_activation) return {};
    const double inputs = input.model.gated ? 2 : 1;
    if (!backward()) return {1 / inputs, 0};
    return {inputs, inputs * 2 * static_cast<double>(width)};
}

/// Backward, gate, up and the gradient of their product are read, and both their gradients written.
/// FP8 experts quantise what it makes.
Traffic MoeLayer::activation(std::int64_t rows_here, std::int64_t width) const {
    const double elements = static_cast<double>(rows_here) * static_cast<double>(width);
    const double inputs = input.model.gated ? 2 : 1;
    if (backward()) return {.read = (inputs + 1) * 2 * elements, .written = inputs * 2 * elements};
    Traffic traffic{.read = inputs * 2 * elements, .written = 2 * elements};
    if (system.narrow_experts()) traffic.written = quantise_traffic(elements, 128).written;
    return traffic;
}

Process MoeLayer::route(GpuId gpu) {
    if (!options.compute || !options.router || backward()) co_return;
    co_await host(gpu).launch(4);  // logits, softmax, top-k, weights
    const std::int64_t count = tokens(gpu);
    const GemmPlan logits =
        plan_gemm(input.machine.gpu, {count, input.model.hidden, input.model.experts, kCold});
    co_await run_gemm(card(gpu), logits, KernelName::router);
    co_await run_for(card(gpu), route_seconds(input.machine.gpu, count, input.model.experts),
                     KernelName::router);
}

Process MoeLayer::run_shared(GpuId gpu) {
    const Model& model = input.model;
    const std::int64_t count = tokens(gpu);
    const std::int64_t width = std::int64_t{model.shared_experts} * model.shared_ffn;
    const std::int64_t matrices = model.gated ? 2 : 1;
    if (width == 0) co_return;
    for (std::uint32_t i = 0; i < count; ++i) books.add_shared(first_token(gpu) + i);
    if (!options.compute) co_return;
    std::vector<GemmShape> shapes = {{count, model.hidden, matrices * width, kCold},
                                     {count, width, model.hidden, kCold}};
    if (backward()) {  // through the second matrix, the first, and the gradients of both
        shapes = {{count, model.hidden, width, kCold},
                  {count, matrices * width, model.hidden, kCold},
                  {width, count, model.hidden, kCold},
                  {matrices * width, count, model.hidden, kCold}};
    }
    const FusedEnd end = end_of_up(width);
    shapes.front().stored = end.stored;
    shapes.front().beside = end.read;
    for (GemmShape& shape : shapes) shape.fp8 = system.narrow_experts();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        co_await host(gpu).launch(1);
        const GemmPlan gemm = plan(*this, input.machine.gpu, shapes[i], nullptr);
        co_await run_gemm(card(gpu), gemm, KernelName::shared_experts, sim::Priority::low);
        if (i > 0 || system.fused_activation) continue;
        co_await host(gpu).launch(1);
        const Traffic traffic = activation(count, width);
        co_await run_stream(card(gpu), traffic, KernelName::shared_experts);
    }
}

/// A weight's gradient is the inputs' transpose times the outputs' gradient: as many operations as
/// the way forward, all experts as one grouped kernel, behind everything that others wait for.
Process MoeLayer::weight_gradients(GpuId gpu) {
    if (backward() && options.compute) {
        const std::int64_t matrices = input.model.gated ? 3 : 2;
        const sim::CounterId done = endpoint(gpu).add_counter("gradients of an expert");
        std::int64_t started = 0;
        for (const int expert : experts_of(gpu)) {
            const std::int64_t rows_here = rows_on(rank_of(gpu), expert);
            if (rows_here == 0) continue;
            GemmShape shape{matrices * inner(), rows_here, input.model.hidden, kCold};
            shape.fp8 = system.narrow_experts();
            endpoint(gpu).spawn("gradient of an expert",
                                run_gradient(card(gpu), plan_gemm(input.machine.gpu, shape), done));
            ++started;
        }
        co_await endpoint(gpu).until(done, started);
        endpoint(gpu).drop_counter(done);
    }
    endpoint(gpu).increase(gradients_);
}

Process MoeLayer::scale(GpuId gpu) {
    if (!options.compute) co_return;
    co_await host(gpu).launch(1);
    const std::int64_t results = std::int64_t{top_k()} * shards();
    const Traffic traffic =
        sum_traffic(tokens(gpu) * results, results, static_cast<double>(combine_bytes()));
    co_await run_stream(card(gpu), traffic, KernelName::weighted_sum);
}

}  // namespace moehub::layers
