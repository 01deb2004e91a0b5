// DySHARP: a token leaves its GPU once, with the list of its experts; the switch copies it to them
// and adds up what they made of it. One kernel: some SMs dispatch, some combine, the others compute
// whatever tile is ready, so that tokens of all stages are underway together.
//
// With `switch_copies = false` the same schedule moves every copy by itself (fusion-only): rows
// have no address before counts are known, and every result is loaded by itself.
#include "layers/rows.hpp"
#include "layers/token_fusion.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace dysharp {

struct Dysharp {
    MoeLayer& layer;
    MultimemLayer rows{layer, {.in_switch = layer.system.switch_copies}};
    RowCounts counts{layer};
    sim::CounterId shared = layer.gpus.add_counter("shared experts");
    TokenFusion fusion{rows};
};

/// The runtime binds: every hub learns how many rows its experts will get.
Process bind(Dysharp& d, GpuId gpu) {
    const std::vector<MultimemExpert>& experts = d.rows.experts(gpu);
    if (!d.layer.backward()) {
        const auto counts = static_cast<Bytes>(std::max<std::size_t>(1, experts.size()));
        co_await d.counts.exchange(gpu, kCount * counts);
    }
    for (std::size_t i = 0; i < experts.size(); ++i) {
        const std::int64_t rows = d.counts.rows(gpu, experts[i].expert);
        d.layer.gpus.hub(gpu).expect(experts[i].input, rows);
        d.layer.endpoint(gpu).spawn("expert", d.fusion.run_expert(gpu, i, rows));
    }
}

Process run_layer(Dysharp& d, GpuId gpu) {
    MoeLayer& layer = d.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    endpoint.spawn("end of the experts", d.fusion.experts_ended(gpu));
    co_await layer.route(gpu);
    co_await quantise_tokens(layer, gpu);
    co_await layer.host(gpu).launch(1);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, d.shared));
    {
        const Communicating communicating(layer.card(gpu));
        if (layer.system.switch_copies) {
            endpoint.spawn("bind", bind(d, gpu));
        } else {
            co_await bind(d, gpu);
            co_await small_kernels(layer, gpu, 1);  // addresses of the rows
        }
        d.fusion.add_tokens(gpu);
        endpoint.spawn("dispatch", d.fusion.dispatch(gpu, sim::kNoCounter));
        co_await d.fusion.combine(gpu, true);
    }
    co_await endpoint.until(d.shared, 1);
    co_await layer.finish(gpu);
    d.rows.close_books(gpu);
}

}  // namespace dysharp

LayerResult run_dysharp(const Job& job) {
    return run_program(job, "dysharp layer", dysharp::run_layer);
}

}  // namespace moehub::systems
