// DeepEP's low-latency kernels: every row goes at once to its place in the expert's slots for this
// source, of which there are enough for the worst case, so nothing is counted before. A count for
// each expert follows the rows; who has heard all counts has all rows. Rows travel over NVLink
// inside a node and over NICs between nodes.
#include "systems/buffers.hpp"
#include "systems/copies.hpp"
#include "systems/expert_kernels.hpp"
#include "systems/mail.hpp"
#include "systems/systems.hpp"

#include <algorithm>

namespace moehub::systems {
namespace {

constexpr Bytes kSource = 16;  ///< bytes in front of a row: its place at home
constexpr Bytes kFlag = 4;     ///< bytes of a count

struct LowLatency {
    explicit LowLatency(Layer& of) : layer(of), dispatch(of, "rows", 1), combine(of, "results", 1) {
        for (std::uint32_t gpu = 0; gpu < of.gpus(); ++gpu)
            shared.push_back(of.endpoint(static_cast<GpuId>(gpu)).add_counter("shared experts"));
    }

    Layer& layer;
    Mail dispatch;
    Mail combine;
    std::vector<sim::CounterId> shared;  ///< by GPU: 1 when the shared experts are done
};

/// Peers from the next one on, so that not all send to the same at once; the GPU itself last.
GpuId peer_at(const Layer& layer, GpuId gpu, std::uint32_t step) {
    return static_cast<GpuId>((gpu + 1 + step) % layer.gpus());
}

/// One row to each peer in turn.
void send_rows(Layer& layer, Mail& mail, GpuId gpu, const std::vector<Buffer>& rows, Bytes bytes) {
    std::size_t most = 0;
    for (const Buffer& some : rows) most = std::max(most, some.size());
    for (std::size_t i = 0; i < most; ++i) {
        for (std::uint32_t step = 0; step < layer.gpus(); ++step) {
            const GpuId peer = peer_at(layer, gpu, step);
            if (i < rows[peer].size()) mail.send(gpu, peer, 0, {rows[peer][i]}, bytes);
        }
    }
}

/// Behind the rows, to every peer: a count for each of its experts, or for each of the GPU's own.
void send_counts(Layer& layer, Mail& mail, GpuId gpu, bool own) {
    for (std::uint32_t step = 0; step < layer.gpus(); ++step) {
        const GpuId peer = peer_at(layer, gpu, step);
        const std::size_t experts = layer.experts_of(own ? gpu : peer).size();
        for (std::size_t i = 0; i < experts; ++i) mail.send(gpu, peer, 0, {}, kFlag);
    }
}

/// The kernel stays on its SMs while rows are underway.
Process wait(Layer& layer, Mail& mail, GpuId gpu, std::int64_t messages) {
    sim::Card& card = layer.card(gpu);
    const int sms = std::min(layer.system.communication_sms, card.gpu.sms);
    card.blocks.hold(sms);
    co_await mail.arrived(gpu, 0, messages);
    card.blocks.release(sms);
}

/// FP8 rows are cast and sent, then received rows are packed by expert.
Process dispatch(LowLatency& ll, GpuId gpu) {
    Layer& layer = ll.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.endpoint(gpu).delay(layer.system.dispatch_start);
    const Bytes bytes = layer.dispatch_bytes() + scale_bytes(layer);
    send_rows(layer, ll.dispatch, gpu, rows_by_peer(layer, gpu), bytes + kSource);
    send_counts(layer, ll.dispatch, gpu, false);
    const std::int64_t rows = layer.rows_on(gpu);
    const auto counts = static_cast<std::int64_t>(layer.experts_of(gpu).size() * layer.gpus());
    co_await wait(layer, ll.dispatch, gpu, rows + counts);
    const double packed = static_cast<double>(rows * bytes);
    if (rows > 0) co_await run_stream(layer.card(gpu), {.read = packed, .written = packed});
}

/// FP8 rows for experts that compute in BF16.
Process cast_rows(Layer& layer, GpuId gpu, std::int64_t rows) {
    const auto sent = static_cast<double>(layer.dispatch_bytes());
    if (!layer.options.compute || rows == 0 || expert_bytes(layer) <= sent) co_return;
    const auto count = static_cast<double>(rows);
    co_await run_stream(layer.card(gpu),
                        {.read = count * sent, .written = count * expert_bytes(layer)});
}

/// Every result goes home; a token's results are added there.
Process combine(LowLatency& ll, GpuId gpu, const std::vector<Buffer>& results) {
    Layer& layer = ll.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.endpoint(gpu).delay(layer.system.combine_start);
    send_rows(layer, ll.combine, gpu, results, layer.combine_bytes());
    send_counts(layer, ll.combine, gpu, true);
    const auto rows = static_cast<std::int64_t>(layer.rows_of(gpu).size());
    std::size_t counts = 0;
    for (std::uint32_t peer = 0; peer < layer.gpus(); ++peer)
        counts += layer.experts_of(static_cast<GpuId>(peer)).size();
    co_await wait(layer, ll.combine, gpu, rows + static_cast<std::int64_t>(counts));
    co_await run_stream(layer.card(gpu), sum_traffic(rows, layer.top_k(),
                                                     static_cast<double>(layer.combine_bytes())));
}

Process run_layer(LowLatency& ll, GpuId gpu) {
    Layer& layer = ll.layer;
    sim::Endpoint& endpoint = layer.endpoint(gpu);
    co_await layer.route(gpu);
    endpoint.spawn("shared experts", run_shared_beside(layer, gpu, ll.shared[gpu]));
    layer.dispatch_began(gpu);
    co_await dispatch(ll, gpu);
    layer.dispatch_ended(gpu);

    Buffer received = ll.dispatch.take(gpu, 0);
    co_await cast_rows(layer, gpu, static_cast<std::int64_t>(received.size()));
    co_await run_grouped_experts(layer, gpu);
    compute(layer, gpu, received);

    const std::vector<Buffer> results = rows_by_home(layer, received);
    layer.combine_began(gpu);
    co_await combine(ll, gpu, results);
    layer.combine_ended(gpu);
    take_back(layer, gpu, ll.combine.take(gpu, 0));
    co_await endpoint.until(ll.shared[gpu], 1);
    co_await layer.finish(gpu);
}

}  // namespace

LayerResult run_deepep_ll(const Job& job) {
    Layer layer(job);
    LowLatency low_latency(layer);
    run_on_all(layer, low_latency, [](LowLatency& shared, GpuId gpu) {
        shared.layer.endpoint(gpu).spawn("deepep-ll layer", run_layer(shared, gpu));
    });
    return layer.result();
}

}  // namespace moehub::systems
