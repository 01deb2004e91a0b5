// The bound that nothing beats: routing, experts and scaling, with every row where it is needed.
#include "systems/systems.hpp"

namespace moehub::systems {
namespace {

Process run_expert(Layer& layer, GpuId gpu, int expert, sim::CounterId done) {
    const std::int64_t rows = layer.rows_on(layer.rank_of(gpu), expert);
    const GemmPlan up = layer.plan_up(rows);
    const GemmPlan down = layer.plan_down(rows);
    if (rows > 0) co_await run_gemm(layer.card(gpu), up);
    layer.first_gemm_ended(gpu);
    if (rows > 0) co_await run_gemm(layer.card(gpu), down);
    layer.endpoint(gpu).increase(done);
}

Process run_shared(Layer& layer, GpuId gpu, sim::CounterId done) {
    co_await layer.run_shared(gpu);
    layer.endpoint(gpu).increase(done);
}

Process run_layer(Layer& layer, GpuId gpu) {
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const sim::CounterId done = endpoint.add_counter("finished experts");
    co_await layer.route(gpu);
    const std::vector<int>& experts = layer.experts_of(gpu);
    for (const int expert : experts) {
        endpoint.spawn("expert", run_expert(layer, gpu, expert, done));
    }
    endpoint.spawn("shared experts", run_shared(layer, gpu, done));
    co_await endpoint.until(done, static_cast<std::int64_t>(experts.size()) + 1);
    co_await layer.scale(gpu);
    layer.ended(gpu);
}

}  // namespace

void spawn_ideal(Layer& layer, GpuId gpu) {
    layer.endpoint(gpu).spawn("ideal layer", run_layer(layer, gpu));
}

}  // namespace moehub::systems
