#include "layers/rows.hpp"
#include "sim/gpu/gemm.hpp"
#include "sim/kernels/kernels.hpp"

#include <numeric>

namespace moehub::layers {
namespace {

/// Backward, gradients pass the second matrix first, and of the first there are two where gated.
GemmPlan plan(const MoeLayer& layer, const std::vector<std::int64_t>& rows, bool up) {
    const bool several = layer.input.model.gated && up != layer.backward();
    const std::int64_t inner = (several ? 2 : 1) * std::int64_t{layer.inner()};
    const std::int64_t hidden = layer.input.model.hidden;
    const FusedEnd end = up ? layer.end_of_up(layer.inner()) : FusedEnd{};
    const Gpu& gpu = layer.input.machine.gpu;
    if (gpu.library != "torch" && !layer.backward())
        return plan_expert_gemm(gpu, {rows, up ? hidden : inner, up ? inner : hidden,
                                      layer.system.expert_format, end.stored, end.read});
    GroupedShape shape{rows, up ? hidden : inner, up ? inner : hidden};
    shape.fp8 = layer.system.narrow_experts();
    shape.stored = end.stored;
    shape.beside = end.read;
    shape.cold = true;  // other layers' weights went through L2 since
    return plan_grouped_gemm(gpu, shape);
}

}  // namespace

double expert_bytes(const MoeLayer& layer) {
    return bytes_of(layer.system.expert_format) * static_cast<double>(layer.input.model.hidden);
}

Process quantise_tokens(MoeLayer& layer, GpuId gpu) {
    if (!layer.options.compute || !layer.dispatches_fp8()) co_return;
    co_await layer.host(gpu).launch(1);
    const double elements = static_cast<double>(layer.tokens(gpu)) * layer.input.model.hidden;
    const Traffic traffic = quantise_traffic(elements, 128);
    co_await run_stream(layer.card(gpu), traffic, KernelName::quantise);
}

Process convert_rows(MoeLayer& layer, GpuId gpu, std::int64_t rows) {
    if (!layer.options.compute || layer.dispatches_fp8() == layer.system.narrow_experts())
        co_return;
    co_await layer.host(gpu).launch(1);
    if (rows == 0) co_return;
    const auto count = static_cast<double>(rows);
    const Traffic traffic{.read = count * static_cast<double>(layer.dispatch_bytes()),
                          .written = count * expert_bytes(layer)};
    co_await run_stream(layer.card(gpu), traffic, KernelName::convert);
}

Process run_grouped_experts(MoeLayer& layer, GpuId gpu, std::vector<std::int64_t> rows) {
    const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    const bool runs = layer.options.compute && all > 0;
    const GemmPlan up = runs ? plan(layer, rows, true) : GemmPlan{};
    const GemmPlan down = runs ? plan(layer, rows, false) : GemmPlan{};
    co_await layer.host(gpu).launch(1);
    if (runs) co_await run_gemm(layer.card(gpu), up, KernelName::expert_up);
    layer.gpus.first_gemm_ended(gpu);
    co_await run_activation(layer, gpu, all);
    co_await layer.host(gpu).launch(1);
    if (runs) co_await run_gemm(layer.card(gpu), down, KernelName::expert_down);
}

Process finish_with_shared(MoeLayer& layer, GpuId gpu) {
    co_await layer.run_shared(gpu);
    co_await layer.finish(gpu);
}

Process run_shared_beside(MoeLayer& layer, GpuId gpu, sim::CounterId done) {
    co_await layer.run_shared(gpu);
    layer.endpoint(gpu).increase(done);
}

}  // namespace moehub::layers
