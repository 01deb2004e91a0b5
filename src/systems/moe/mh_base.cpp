// MoE-Hub without the DAM: addresses are allocated by the hub, but software must find out what has
// arrived. As in FlashDMoE there is one flag per producer and expert: the producer waits for the
// acknowledgements of all its rows to the expert and then raises its flag there; the expert's
// thread blocks poll until every producer's flag is up.
#include "layers/hub_layer.hpp"
#include "layers/rows.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace mh_base {

Process raise_flag(HubLayer& hub, GpuId gpu, std::uint32_t expert, std::int64_t stores) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    co_await endpoint.until(hub.counters().sent_to + expert, stores);
    for (const GpuId consumer : hub.gpus_with(expert)) {
        store_flag(endpoint, consumer, hub.counters().flags + expert);
    }
}

Process produce(HubLayer& hub, GpuId gpu) {
    co_await hub.layer.route(gpu);
    co_await quantise_tokens(hub.layer, gpu);
    co_await hub.layer.host(gpu).launch(3);  // the experts' GEMMs, which wait for rows; the stores
    hub.communication(gpu, true);
    hub.layer.endpoint(gpu).spawn("shared experts", hub.run_shared(gpu));
    const std::vector<std::int64_t> stores = hub.stores_by_expert(gpu);
    for (std::uint32_t expert = 0; expert < stores.size(); ++expert) {
        hub.layer.endpoint(gpu).spawn("flag", raise_flag(hub, gpu, expert, stores[expert]));
    }
    co_await hub.send_rows(gpu, true);
}

Process run_expert(HubLayer& hub, GpuId gpu, LocalExpert& expert) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    const auto number = static_cast<std::uint32_t>(expert.expert);
    co_await endpoint.until(hub.counters().flags + number, hub.layer.gpus.count());
    co_await endpoint.delay(hub.layer.input.machine.gpu.overheads.flag_round_trip);
    const std::uint32_t rows = hub.rows_in(gpu, expert);
    expert.up->start_all(rows);
    co_await expert.up->finish(rows);
    hub.layer.gpus.first_gemm_ended(gpu);
    co_await run_activation(hub.layer, gpu, rows);
    co_await expert.down->run(rows);
    endpoint.increase(hub.counters().kernels_done);
}

Process collect(HubLayer& hub, GpuId gpu) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    co_await endpoint.until(hub.counters().kernels_done, hub.kernels(gpu));
    co_await endpoint.until(hub.counters().results_sent, hub.rows_in(gpu));
    for (std::uint32_t i = 0; i < hub.layer.gpus.count(); ++i) {
        const auto home = static_cast<GpuId>((gpu + i) % hub.layer.gpus.count());
        store_flag(endpoint, home, hub.counters().result_flags);
    }
    co_await endpoint.until(hub.counters().result_flags, hub.layer.gpus.count());
    co_await endpoint.delay(hub.layer.input.machine.gpu.overheads.flag_round_trip);
    hub.check_results(gpu);
    hub.communication(gpu, false);
    co_await hub.layer.scale(gpu);
    co_await hub.layer.finish(gpu);
}

void spawn(HubLayer& hub, GpuId gpu) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    endpoint.spawn("producer", produce(hub, gpu));
    for (LocalExpert& expert : hub.experts(gpu)) {
        endpoint.spawn("expert", run_expert(hub, gpu, expert));
    }
    endpoint.spawn("collect", collect(hub, gpu));
}

}  // namespace mh_base

LayerResult run_mh_base(const Job& job) {
    return run_hub(job, mh_base::spawn);
}

}  // namespace moehub::systems
