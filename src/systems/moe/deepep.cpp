// DeepEP's normal kernels with grouped GEMMs: counts first, then one copy of a token to each GPU
// that needs it, pushed in chunks by a few SMs; the user copies rows to their experts and sums
// what a GPU's experts made of a token, so that one row comes back.
#include "layers/copies.hpp"
#include "layers/expert_kernels.hpp"
#include "layers/rows.hpp"
#include "systems/moe/chunked.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {
namespace {

constexpr Bytes kCount = 4;    ///< bytes of a count of rows, of a token's number
constexpr Bytes kChoice = 12;  ///< bytes of an expert's number (8) and its weight, of each choice

struct DeepEp {
    explicit DeepEp(MoeLayer& of);

    MoeLayer& layer;
    Mail counts;
    ChunkedExchange dispatch;
    ChunkedExchange combine;
    std::vector<Lanes> lanes;  ///< by GPU
    sim::CounterId shared;     ///< 1 when the shared experts are done
};

/// Channels divide a GPU's tokens evenly.
Lanes lanes_of(const MoeLayer& layer, GpuId gpu, int channels) {
    Lanes lanes(static_cast<std::size_t>(channels), std::vector<Rows>(layer.gpus.count()));
    const std::vector<Rows> rows = rows_by_peer(layer, gpu);
    for (std::size_t peer = 0; peer < rows.size(); ++peer) {
        for (const CarriedRow& row : rows[peer]) {
            const std::uint64_t token = row.token - layer.first_token(gpu);
            lanes[token * static_cast<std::uint64_t>(channels) / layer.tokens(gpu)][peer].push_back(
                row);
        }
    }
    return lanes;
}

DeepEp::DeepEp(MoeLayer& of)
    : layer(of),
      counts(of.gpus, "counts of a peer", 1),
      dispatch(of, "chunks of rows", false),
      combine(of, "chunks of results", true),
      shared(of.gpus.add_counter("shared experts")) {
    for (std::uint32_t i = 0; i < of.gpus.count(); ++i) {
        const auto gpu = static_cast<GpuId>(i);
        lanes.push_back(lanes_of(of, gpu, dispatch.channels()));
        if (of.backward()) dispatch.expect_known(lanes.back());
        combine.expect_return(gpu, lanes.back());
    }
}

/// Who sends how much to whom: a kernel that counts, one that tells all others and waits for them.
Process notify(DeepEp& d, GpuId gpu) {
    MoeLayer& layer = d.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.host(gpu).launch(2);  // the kernel that counts, the one that tells
    const double choices = static_cast<double>(layer.rows_of(gpu).size());
    co_await run_stream(layer.card(gpu), {.read = 8 * choices, .written = choices});
    const auto experts = static_cast<Bytes>(layer.experts_of(gpu).size());
    for (std::uint32_t step = 1; step < layer.gpus.count(); ++step) {
        const auto peer = static_cast<GpuId>((gpu + step) % layer.gpus.count());
        d.counts.tell(gpu, peer, 0, d.dispatch.announcement(peer, d.lanes[gpu]),
                      kCount * (1 + experts));
    }
    co_await d.counts.arrived(gpu, 0, layer.gpus.count() - 1);
    d.dispatch.expect(gpu, d.dispatch.announcement(gpu, d.lanes[gpu]));
    for (const sim::Received& told : d.counts.take_messages(gpu, 0)) {
        d.dispatch.expect(gpu, told.message.counts);
    }
    co_await layer.endpoint(gpu).delay(layer.system.barrier);
}

/// Copies of received tokens to all their experts here, or the sums of what those made: `wide`
/// rows on the experts' side.
Process reorder_copies(MoeLayer& layer, GpuId gpu, std::int64_t rows, std::int64_t copies,
                       bool out) {
    if (!layer.options.compute) co_return;
    co_await layer.host(gpu).launch(1);
    if (rows == 0) co_return;
    const auto sent = static_cast<double>(out ? layer.dispatch_bytes() : layer.combine_bytes());
    const double wide = static_cast<double>(rows) * expert_bytes(layer);
    const double narrow = static_cast<double>(copies) * sent;
    const Traffic expand{.read = narrow, .written = wide};
    const Traffic sum{.read = static_cast<double>(rows * layer.row_bytes()), .written = narrow};
    co_await run_stream(layer.card(gpu), out ? expand : sum);
}

/// Results go back the way the rows came.
Lanes results_of(const MoeLayer& layer, const std::vector<Rows>& received) {
    Lanes lanes;
    for (const Rows& rows : received) lanes.push_back(rows_by_home(layer, rows));
    return lanes;
}

Process run_layer(DeepEp& d, GpuId gpu) {
    MoeLayer& layer = d.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await layer.route(gpu);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, d.shared));
    if (!layer.backward()) co_await notify(d, gpu);
    // For the sums, unless the host provides for the worst case.
    const bool waits = layer.system.host_waits && !layer.backward();
    if (waits) co_await layer.host(gpu).synchronise();

    co_await quantise_tokens(layer, gpu);
    co_await layer.host(gpu).launch(1);
    layer.gpus.dispatch_began(gpu);
    co_await endpoint.delay(layer.system.dispatch_start);
    const Bytes beside = kCount + kChoice * layer.top_k();
    co_await d.dispatch.run(gpu, std::move(d.lanes[gpu]), layer.dispatch_bytes() + beside);
    layer.gpus.dispatch_ended(gpu);

    std::vector<Rows> received = d.dispatch.received(gpu);
    std::int64_t copies = 0;
    for (const Rows& rows : received) copies += copies_in(rows);
    const std::int64_t rows = count_rows(received);
    co_await reorder_copies(layer, gpu, rows, copies, true);
    const std::vector<std::int64_t> by_expert = rows_by_expert(layer, gpu, received);
    co_await run_grouped_experts(layer, gpu, by_expert);
    layer.experts_ended(gpu);
    for (Rows& some : received) compute(layer, gpu, some);
    co_await reorder_copies(layer, gpu, rows, copies, false);

    co_await layer.host(gpu).launch(1);
    layer.gpus.combine_began(gpu);
    co_await endpoint.delay(layer.system.combine_start);
    co_await d.combine.run(gpu, results_of(layer, received), layer.combine_bytes() + kCount);
    layer.gpus.combine_ended(gpu);
    for (const Rows& some : d.combine.received(gpu)) take_back(layer, gpu, some);
    co_await endpoint.until(d.shared, 1);
    co_await layer.finish(gpu);
}

}  // namespace

LayerResult run_deepep(const Job& job) {
    return run_program<DeepEp>(job, "deepep layer", run_layer);
}

}  // namespace moehub::systems
