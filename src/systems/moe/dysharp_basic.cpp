// DySHARP's primitives without its fusion: dispatch, experts and combine one after the other, with
// barriers of flags between. Less traffic, but each step uses one direction of the links: dispatch
// saves where tokens go up and waits where they come down. With `switch_copies = false`
// (steps-only) the same steps move every copy by itself, and a pass adds up a GPU's results of a
// token.
#include "layers/mail.hpp"
#include "layers/multimem_layer.hpp"
#include "layers/rows.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace dysharp_basic {

constexpr Bytes kFlag = 16;

struct Basic {
    MoeLayer& layer;
    MultimemLayer rows{layer, {layer.system.switch_copies, MultimemLayer::Tiles::none, false}};
    RowCounts counts{layer};
    Mail flags{layer.gpus, "GPUs that have come so far", 2};
    CombiningKernel kernel{
        rows, [this](GpuId gpu, std::uint32_t) { layer.endpoint(gpu).increase(collected); }};
    sim::CounterId acknowledged = layer.gpus.add_counter("acknowledged tokens");
    sim::CounterId collected = layer.gpus.add_counter("sums of results");
};

/// Until all rows of all GPUs are where they belong.
Process dispatch(Basic& b, GpuId gpu) {
    MoeLayer& layer = b.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.host(gpu).launch(1);
    layer.gpus.dispatch_began(gpu);
    if (!layer.system.switch_copies && !layer.backward()) {  // rows have no address otherwise
        const std::size_t experts = std::max<std::size_t>(1, b.rows.experts(gpu).size());
        co_await b.counts.exchange(gpu, kCount * static_cast<Bytes>(experts));
        if (layer.options.compute) co_await small_kernels(layer, gpu, 1);
    }
    const std::int64_t stores = add_tokens(b.rows, gpu);
    co_await send_tokens(b.rows, gpu, b.acknowledged);
    co_await layer.endpoint(gpu).until(b.acknowledged, stores);
    co_await meet(layer.gpus, b.flags, gpu, 0, kFlag);
    layer.gpus.dispatch_ended(gpu);
}

/// Without the switch a pass adds up what this GPU's experts made of a token.
Process add_up(Basic& b, GpuId gpu) {
    MoeLayer& layer = b.layer;
    if (!layer.options.compute) co_return;
    co_await layer.host(gpu).launch(1);
    const std::int64_t rows = layer.rows_on(gpu);
    if (rows == 0) co_return;
    const auto width = static_cast<double>(layer.combine_bytes());
    const Traffic traffic{static_cast<double>(rows) * width,
                          static_cast<double>(b.rows.tokens_on(gpu)) * width, Access::narrow};
    co_await run_stream(layer.card(gpu), traffic, KernelName::weighted_sum);
}

Process run_experts_here(Basic& b, GpuId gpu) {
    const std::vector<std::int64_t> rows = b.rows.rows_by_expert(gpu);
    co_await run_grouped_experts(b.layer, gpu, rows);
    write_all_results(b.rows, gpu);
    if (!b.layer.system.switch_copies) co_await add_up(b, gpu);
    b.layer.experts_ended(gpu);
}

/// When all GPUs have results.
Process combine(Basic& b, GpuId gpu) {
    MoeLayer& layer = b.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.host(gpu).launch(1);
    layer.gpus.combine_began(gpu);
    co_await meet(layer.gpus, b.flags, gpu, 1, kFlag);
    for (std::uint32_t i = 0; i < layer.tokens(gpu); ++i) {
        b.kernel.add(gpu, {layer.first_token(gpu) + i, {0, layer.combine_bytes()}, true});
    }
    b.kernel.start(gpu);
    co_await layer.endpoint(gpu).until(b.collected, layer.tokens(gpu));
    b.kernel.stop(gpu);
    layer.gpus.combine_ended(gpu);
}

Process run_layer(Basic& b, GpuId gpu) {
    MoeLayer& layer = b.layer;
    co_await layer.route(gpu);
    co_await quantise_tokens(layer, gpu);
    co_await dispatch(b, gpu);
    co_await convert_rows(layer, gpu, layer.rows_on(gpu));
    co_await run_experts_here(b, gpu);
    co_await combine(b, gpu);
    co_await finish_with_shared(layer, gpu);
    b.rows.close_books(gpu);
}

}  // namespace dysharp_basic

LayerResult run_dysharp_basic(const Job& job) {
    return run_program(job, "dysharp-basic layer", dysharp_basic::run_layer);
}

}  // namespace moehub::systems
