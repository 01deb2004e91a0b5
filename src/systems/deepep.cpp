// DeepEP's normal kernels with grouped GEMMs: counts first, then one copy of a token to each GPU
// that needs it, pushed in chunks by a few SMs; the user copies rows to their experts and sums
// what a GPU's experts made of a token, so that one row comes back.
#include "systems/buffers.hpp"
#include "systems/chunked.hpp"
#include "systems/copies.hpp"
#include "systems/expert_kernels.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace {

constexpr Bytes kCount = 4;    ///< bytes of a count of rows, of a token's number
constexpr Bytes kChoice = 12;  ///< bytes of an expert's number (8) and its weight, of each slot

struct DeepEp {
    explicit DeepEp(Layer& of);

    Layer& layer;
    Mail counts;
    ChunkedExchange dispatch;
    ChunkedExchange combine;
    std::vector<Lanes> lanes;            ///< by GPU
    std::vector<sim::CounterId> shared;  ///< by GPU: 1 when the shared experts are done
};

/// Channels divide a GPU's tokens evenly.
Lanes lanes_of(const Layer& layer, GpuId gpu, int channels) {
    Lanes lanes(static_cast<std::size_t>(channels), std::vector<Buffer>(layer.gpus()));
    const std::vector<Buffer> rows = rows_by_peer(layer, gpu);
    for (std::size_t peer = 0; peer < rows.size(); ++peer) {
        for (const BufferedRow& row : rows[peer]) {
            const std::uint64_t token = row.token - layer.first_token(gpu);
            lanes[token * static_cast<std::uint64_t>(channels) / layer.tokens(gpu)][peer].push_back(
                row);
        }
    }
    return lanes;
}

DeepEp::DeepEp(Layer& of)
    : layer(of),
      counts(of, "counts of a peer", 1),
      dispatch(of, "chunks of rows"),
      combine(of, "chunks of results") {
    for (std::uint32_t i = 0; i < of.gpus(); ++i) {
        const auto gpu = static_cast<GpuId>(i);
        lanes.push_back(lanes_of(of, gpu, dispatch.channels()));
        dispatch.announce(lanes.back());
        combine.announce_return(gpu, lanes.back());
        shared.push_back(of.endpoint(gpu).add_counter("shared experts"));
    }
}

/// Who sends how much to whom: a kernel that counts, one that tells all others and waits for them;
/// the host waits for the sums unless it provides for the worst case.
Process notify(DeepEp& d, GpuId gpu) {
    Layer& layer = d.layer;
    const Communicating communicating(layer.card(gpu));
    const double choices = static_cast<double>(layer.rows_of(gpu).size());
    co_await run_stream(layer.card(gpu), {.read = 8 * choices, .written = choices});
    const auto experts = static_cast<Bytes>(layer.experts_of(gpu).size());
    for (std::uint32_t step = 1; step < layer.gpus(); ++step) {
        const auto peer = static_cast<GpuId>((gpu + step) % layer.gpus());
        d.counts.send(gpu, peer, 0, {}, kCount * (1 + experts));
    }
    co_await d.counts.arrived(gpu, 0, layer.gpus() - 1);
    co_await layer.endpoint(gpu).delay(layer.system.barrier);
    const Overheads& host = layer.input.machine.gpu.overheads;
    if (layer.system.host_waits) {
        co_await layer.endpoint(gpu).delay(host.host_sync +
                                           layer.system.host_operators * host.eager_launch);
    }
}

/// A pass before the dispatch, where rows travel in FP8.
Process cast_tokens(Layer& layer, GpuId gpu) {
    if (!layer.options.compute || layer.system.dispatch_element > 1) co_return;
    const double elements = static_cast<double>(layer.tokens(gpu)) * layer.input.model.hidden;
    co_await run_stream(layer.card(gpu), quantise_traffic(elements, 128));
}

/// Copies of received tokens to all their experts here, or the sums of what those made: `wide`
/// rows on the experts' side.
Process reorder_copies(Layer& layer, GpuId gpu, std::int64_t rows, std::int64_t copies, bool out) {
    if (!layer.options.compute || rows == 0) co_return;
    const auto sent = static_cast<double>(out ? layer.dispatch_bytes() : layer.combine_bytes());
    const double wide = static_cast<double>(rows) * expert_bytes(layer);
    const double narrow = static_cast<double>(copies) * sent;
    const Traffic expand{.read = narrow, .written = wide};
    const Traffic sum{.read = static_cast<double>(rows * layer.row_bytes()), .written = narrow};
    co_await run_stream(layer.card(gpu), out ? expand : sum);
}

/// Results go back the way the rows came.
Lanes results_of(const Layer& layer, const std::vector<Buffer>& received) {
    Lanes lanes;
    for (const Buffer& rows : received) lanes.push_back(rows_by_home(layer, rows));
    return lanes;
}

Process run_layer(DeepEp& d, GpuId gpu) {
    Layer& layer = d.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await layer.route(gpu);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, d.shared[gpu]));
    if (!layer.backward()) co_await notify(d, gpu);

    co_await cast_tokens(layer, gpu);
    layer.dispatch_began(gpu);
    co_await endpoint.delay(layer.system.dispatch_start);
    const Bytes beside = kCount + kChoice * layer.top_k() + scale_bytes(layer);
    co_await d.dispatch.run(gpu, std::move(d.lanes[gpu]), layer.dispatch_bytes() + beside);
    layer.dispatch_ended(gpu);

    std::vector<Buffer> received = d.dispatch.received(gpu);
    std::int64_t copies = 0;
    for (const Buffer& rows : received) copies += copies_in(rows);
    const std::int64_t rows = count_rows(received);
    co_await reorder_copies(layer, gpu, rows, copies, true);
    co_await run_grouped_experts(layer, gpu);
    for (Buffer& some : received) compute(layer, gpu, some);
    co_await reorder_copies(layer, gpu, rows, copies, false);

    layer.combine_began(gpu);
    co_await endpoint.delay(layer.system.combine_start);
    co_await d.combine.run(gpu, results_of(layer, received), layer.combine_bytes() + kCount);
    layer.combine_ended(gpu);
    for (const Buffer& some : d.combine.received(gpu)) take_back(layer, gpu, some);
    co_await endpoint.until(d.shared[gpu], 1);
    co_await layer.finish(gpu);
}

}  // namespace

LayerResult run_deepep(const Job& job) {
    Layer layer(job);
    DeepEp deepep(layer);
    run_on_all(layer, deepep, [](DeepEp& shared, GpuId gpu) {
        shared.layer.endpoint(gpu).spawn("deepep layer", run_layer(shared, gpu));
    });
    return layer.result();
}

}  // namespace moehub::systems
