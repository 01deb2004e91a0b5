// The bound: routing, experts and scaling, with every row where it is needed. The first GEMMs were
// launched while the router ran.
#include "layers/rows.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace {

/// With the tiles that suit each expert's rows, or those of the rows expected: which is faster
/// depends on how the experts' tiles fill the card together.
struct Ideal {
    MoeLayer& layer;
    bool tiles_of_expected_rows = false;
};

Process run_expert(Ideal& ideal, GpuId gpu, int expert, sim::CounterId done) {
    MoeLayer& layer = ideal.layer;
    const std::int64_t rows = layer.rows_on(layer.rank_of(gpu), expert);
    const std::int64_t expected = ideal.tiles_of_expected_rows ? layer.tiling_rows(expert) : rows;
    GemmPlan up = layer.plan_up_like(rows, layer.plan_up(expected));
    const GemmPlan down = layer.plan_down_like(rows, layer.plan_down(expected));
    up.start = 0;
    if (rows > 0) co_await run_gemm(layer.card(gpu), up);
    layer.gpus.first_gemm_ended(gpu);
    co_await run_activation(layer, gpu, rows);
    if (rows > 0) co_await run_gemm(layer.card(gpu), down);
    layer.endpoint(gpu).increase(done);
}

Process run_shared(MoeLayer& layer, GpuId gpu, sim::CounterId done) {
    co_await layer.run_shared(gpu);
    layer.endpoint(gpu).increase(done);
}

Process run_layer(Ideal& ideal, GpuId gpu) {
    MoeLayer& layer = ideal.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    const sim::CounterId done = endpoint.add_counter("finished experts");
    co_await layer.route(gpu);
    co_await layer.host(gpu).launch(2);  // the experts' GEMMs
    const std::vector<int>& experts = layer.experts_of(gpu);
    for (const int expert : experts) {
        endpoint.spawn("expert", run_expert(ideal, gpu, expert, done));
    }
    endpoint.spawn("shared experts", run_shared(layer, gpu, done));
    co_await endpoint.until(done, static_cast<std::int64_t>(experts.size()) + 1);
    layer.experts_ended(gpu);
    co_await layer.scale(gpu);
    co_await layer.finish(gpu);
}

LayerResult run(const Job& job, bool tiles_of_expected_rows) {
    return run_with_host(job, [&](MoeLayer& layer) {
        Ideal ideal{layer, tiles_of_expected_rows};
        layer.gpus.run("ideal layer", [&](GpuId gpu) { return run_layer(ideal, gpu); });
        layer.deliver_all_locally();
        return layer.result();
    });
}

}  // namespace

LayerResult run_ideal(const Job& job) {
    const LayerResult own = run(job, false);
    const LayerResult expected = run(job, true);
    return own.time <= expected.time ? own : expected;
}

}  // namespace moehub::systems
