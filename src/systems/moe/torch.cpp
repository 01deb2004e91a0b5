// Plain PyTorch of today: a MoE layer whose experts are all on one card, operator by operator, with
// torch._grouped_mm for the experts. Nothing is fused, nothing waits for the card.
#include "layers/rows.hpp"
#include "layers/torch_operators.hpp"
#include "systems/systems.hpp"

#include <cmath>

namespace moehub::systems {
namespace torch {

struct Torch {
    MoeLayer& layer;
};

TorchShape shape_of(const MoeLayer& layer, GpuId gpu) {
    const Model& model = layer.input.model;
    TorchShape shape{layer.tokens(gpu), {}, model.hidden, layer.inner(), model.gated};
    for (const int expert : layer.experts_of(gpu)) {
        shape.rows.push_back(layer.rows_on(layer.rank_of(gpu), expert));
    }
    return shape;
}

/// Autograd notes operators on the way forward and issues those of the way back by itself.
void price_operators(MoeLayer& layer, GpuId gpu) {
    const Overheads& costs = layer.card(gpu).gpu.overheads;
    const double noted = layer.options.recorded ? costs.autograd_notes : 1;
    const double launches = layer.backward() ? costs.autograd_issues : noted;
    const auto launch = static_cast<double>(costs.eager_launch);
    layer.host(gpu).set_per_operator(std::llround(launches * launch));
}

Process run_kernel(sim::Card& card, const TorchOperator& op) {
    if (const auto* gemm = std::get_if<GemmPlan>(&op.kernel)) {
        co_await run_gemm(card, *gemm, op.name);
    } else if (const auto* traffic = std::get_if<Traffic>(&op.kernel)) {
        co_await run_stream(card, *traffic, op.name);
    } else {
        co_await run_for(card, std::get<double>(op.kernel), op.name);
    }
}

Process run_operators(MoeLayer& layer, GpuId gpu, const std::vector<TorchOperator>& operators) {
    for (const TorchOperator& op : operators) {
        co_await layer.host(gpu).launch(op.operators);
        co_await run_kernel(layer.card(gpu), op);
    }
}

Process run_layer(Torch& torch, GpuId gpu) {
    MoeLayer& layer = torch.layer;
    const Gpu& card = layer.card(gpu).gpu;
    const TorchShape shape = shape_of(layer, gpu);
    const TorchPass pass =
        layer.backward() ? torch_backward(card, shape) : torch_forward(card, shape);
    price_operators(layer, gpu);
    std::vector<Rows> rows = permuted(layer, gpu);
    co_await run_operators(layer, gpu, pass.first);
    layer.gpus.first_gemm_ended(gpu);
    co_await run_operators(layer, gpu, pass.rest);
    compute(layer, gpu, rows.front());
    take_back(layer, gpu, rows.front());
    co_await layer.run_shared(gpu);
    layer.gpus.ended(gpu);
}

}  // namespace torch

LayerResult run_torch(const Job& job) {
    return run_program(job, "torch layer", torch::run_layer);
}

}  // namespace moehub::systems
