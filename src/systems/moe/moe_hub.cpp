// MoE-Hub's layer: no counts, no shuffling, no polling. With `once_per_node` a token crosses to
// each node once, and SMs there pass it on (hub_relay.cpp).
#include "layers/hub_layer.hpp"
#include "layers/rows.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace moe_hub {

/// Producer: sends every row as soon as it is routed.
Process produce(HubLayer& hub, GpuId gpu) {
    co_await hub.layer.route(gpu);
    co_await quantise_tokens(hub.layer, gpu);
    co_await hub.layer.host(gpu).launch(3);  // the experts' GEMMs, which wait for rows; the stores
    hub.communication(gpu, true);
    hub.layer.endpoint(gpu).spawn("shared experts", hub.run_shared(gpu));
    if (hub.relay.active()) hub.layer.endpoint(gpu).spawn("relay", hub.relay.run(gpu));
    co_await hub.send_rows(gpu, false);
}

/// Consumer: the DAM starts the first GEMM's blocks as rows arrive; the second sends results back.
Process run_expert(HubLayer& hub, GpuId gpu, LocalExpert& expert) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    co_await hub.all_ready.reached(gpu);
    const std::uint32_t rows = hub.rows_in(gpu, expert);
    co_await expert.up->finish(rows);
    hub.layer.gpus.first_gemm_ended(gpu);
    co_await run_activation(hub.layer, gpu, rows);
    co_await expert.down->run(rows);
    endpoint.increase(hub.counters().kernels_done);
}

/// Back home: the weighted sum of each token's results.
Process collect(HubLayer& hub, GpuId gpu) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    co_await hub.results_ready(gpu);
    hub.communication(gpu, false);
    co_await endpoint.until(hub.counters().kernels_done, hub.kernels(gpu));
    co_await hub.layer.scale(gpu);
    co_await hub.layer.finish(gpu);
}

void spawn(HubLayer& hub, GpuId gpu) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    hub.spawn_dam(gpu);
    endpoint.spawn("producer", produce(hub, gpu));
    for (LocalExpert& expert : hub.experts(gpu)) {
        endpoint.spawn("expert", run_expert(hub, gpu, expert));
    }
    endpoint.spawn("collect", collect(hub, gpu));
}

}  // namespace moe_hub

LayerResult run_moe_hub(const Job& job) {
    return run_hub(job, moe_hub::spawn);
}

}  // namespace moehub::systems
