// MoE-Hub without the DAM: addresses are allocated by the hub, but software must find out what has
// arrived. A producer waits for the acknowledgements of all its rows to an expert and then raises a
// flag there; the expert's thread blocks poll until every producer's flag is up.
#include "systems/hub_layer.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace {

/// Counters by expert, on every GPU.
struct Flags {
    sim::CounterId sent = 0;      ///< acknowledged stores to expert 0; the others follow
    sim::CounterId raised = 0;    ///< flags for expert 0; the others follow
    sim::CounterId returned = 0;  ///< GPUs that have sent all results
};

Flags add_flags(HubLayer& hub, GpuId gpu) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    const auto experts = static_cast<std::size_t>(hub.layer.input.model.experts);
    Flags flags;
    flags.sent = endpoint.add_counters("acknowledged stores to an expert", experts);
    flags.raised = endpoint.add_counters("producers' flags for an expert", experts);
    flags.returned = endpoint.add_counter("flags: all results sent");
    return flags;
}

Process produce(HubLayer& hub, GpuId gpu, Flags flags) {
    co_await hub.layer.route(gpu);
    hub.communication(gpu, true);
    for (const Row& row : hub.layer.rows_of(gpu)) hub.send(gpu, row, flags.sent + row.expert);
    co_await hub.run_shared(gpu);
}

Process raise_flag(HubLayer& hub, GpuId gpu, Flags flags, std::uint32_t expert) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    co_await endpoint.until(flags.sent + expert, hub.stores(gpu, expert));
    for (const GpuId consumer : hub.gpus_with(expert)) {
        store_flag(endpoint, consumer, flags.raised + expert);
    }
}

Process run_expert(HubLayer& hub, GpuId gpu, LocalExpert& expert, Flags flags) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    const auto number = static_cast<std::uint32_t>(expert.expert);
    co_await endpoint.until(flags.raised + number, hub.layer.gpus());
    co_await endpoint.delay(hub.layer.input.machine.gpu.overheads.flag_round_trip);
    const std::uint32_t rows = hub.rows_in(gpu, expert);
    expert.up->start_all(rows);
    co_await expert.up->finish(rows);
    hub.layer.first_gemm_ended(gpu);
    co_await expert.down->run(rows);
    endpoint.increase(hub.counters().kernels_done);
}

Process collect(HubLayer& hub, GpuId gpu, Flags flags) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    co_await endpoint.until(hub.counters().kernels_done, hub.kernels(gpu));
    co_await endpoint.until(hub.counters().results_sent, hub.rows_in(gpu));
    for (std::uint32_t i = 0; i < hub.layer.gpus(); ++i) {
        const auto home = static_cast<GpuId>((gpu + i) % hub.layer.gpus());
        store_flag(endpoint, home, flags.returned);
    }
    co_await endpoint.until(flags.returned, hub.layer.gpus());
    co_await endpoint.delay(hub.layer.input.machine.gpu.overheads.flag_round_trip);
    hub.communication(gpu, false);
    co_await hub.layer.scale(gpu);
    hub.layer.ended(gpu);
}

}  // namespace

void spawn_mh_base(HubLayer& hub, GpuId gpu) {
    sim::Endpoint& endpoint = hub.layer.endpoint(gpu);
    const Flags flags = add_flags(hub, gpu);
    endpoint.spawn("producer", produce(hub, gpu, flags));
    for (int expert = 0; expert < hub.layer.input.model.experts; ++expert) {
        endpoint.spawn("flag", raise_flag(hub, gpu, flags, static_cast<std::uint32_t>(expert)));
    }
    for (LocalExpert& expert : hub.experts(gpu)) {
        endpoint.spawn("expert", run_expert(hub, gpu, expert, flags));
    }
    endpoint.spawn("collect", collect(hub, gpu, flags));
}

}  // namespace moehub::systems
