// MoE-Hub and DySHARP together: the switch copies tokens and adds up results, the hub finds their
// rows and starts what can run, and nobody counts. Tiles start by the DAM, the last of them by
// AllReady; loads of sums start when the hub has heard of all of a token's results.
#include "layers/rows.hpp"
#include "layers/token_fusion.hpp"
#include "sim/hub/isa.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace moe_hub_dysharp {

struct Both {
    MoeLayer& layer;
    MultimemLayer rows{layer, {.tiles = MultimemLayer::Tiles::by_need}};
    sim::AllReady all_ready{layer.gpus.fabric};
    sim::CounterId shared = layer.gpus.add_counter("shared experts");
    TokenFusion fusion{rows};
};

Process produce(Both& b, GpuId gpu) {
    b.all_ready.start(gpu, b.fusion.add_tokens(gpu));
    co_await b.fusion.dispatch(gpu, b.all_ready.acknowledged());
}

Process run_experts_here(Both& b, GpuId gpu) {
    co_await b.all_ready.reached(gpu);
    const std::vector<std::int64_t> rows = b.rows.rows_by_expert(gpu);
    for (std::size_t expert = 0; expert < rows.size(); ++expert) {
        b.layer.endpoint(gpu).spawn("expert", b.fusion.run_expert(gpu, expert, rows[expert]));
    }
}

Process run_layer(Both& b, GpuId gpu) {
    MoeLayer& layer = b.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    endpoint.spawn("end of the experts", b.fusion.experts_ended(gpu));
    co_await layer.route(gpu);
    co_await quantise_tokens(layer, gpu);
    co_await layer.host(gpu).launch(4);  // GEMMs and loads, which wait for rows; the stores
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, b.shared));
    {
        const Communicating communicating(layer.card(gpu));
        endpoint.spawn("producer", produce(b, gpu));
        endpoint.spawn("experts", run_experts_here(b, gpu));
        co_await b.fusion.combine(gpu, false);
    }
    co_await endpoint.until(b.shared, 1);
    co_await layer.finish(gpu);
    b.rows.close_books(gpu);
}

}  // namespace moe_hub_dysharp

LayerResult run_moe_hub_dysharp(const Job& job) {
    return run_program(job, "moe-hub+dysharp layer", moe_hub_dysharp::run_layer);
}

}  // namespace moehub::systems
