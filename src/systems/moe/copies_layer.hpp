/// A layer whose rows travel as copies of tokens, one for each GPU that needs it: counts, dispatch,
/// copies to experts, grouped GEMMs, sums of what a GPU's experts made of a token, combine. How
/// copies travel is `Ways`: ChunkedWays inside a node, ForwardedWays between nodes.
#pragma once
#include "layers/mail.hpp"
#include "layers/moe_layer.hpp"
#include "layers/rows.hpp"
#include "systems/moe/forwarded.hpp"
#include "systems/systems.hpp"

namespace moehub::systems {

/// Bytes of counts, one for each expert of a peer and one for all.
Bytes bytes_of_counts(const MoeLayer& layer, GpuId peer);
/// Bytes beside a token: its number, of each choice an expert's number (8) and its weight.
Bytes bytes_of_choices(const MoeLayer& layer);

template <class Ways>
struct CopiesLayer {
    explicit CopiesLayer(MoeLayer& of)
        : layer(of),
          counts(of.gpus, "counts of a peer", 1),
          ways{of},
          shared(of.gpus.add_counter("shared experts")) {
        for (std::uint32_t i = 0; i < of.gpus.count(); ++i) {
            lanes.push_back(lanes_of(of, static_cast<GpuId>(i), ways.channels()));
            ways.expect_return(static_cast<GpuId>(i), lanes.back());
        }
        if (!of.backward()) return;
        for (std::uint32_t from = 0; from < of.gpus.count(); ++from)
            for (std::uint32_t to = 0; to < of.gpus.count(); ++to)
                ways.expect(static_cast<GpuId>(to),
                            ways.announcement(static_cast<GpuId>(from), static_cast<GpuId>(to),
                                              lanes[from]));
    }

    MoeLayer& layer;
    Mail counts;
    Ways ways;
    std::vector<Lanes> lanes;  ///< by GPU
    sim::CounterId shared;     ///< 1 when the shared experts are done
};

/// Who sends how much to whom: a kernel that counts, one that tells all others and waits for them.
template <class Ways>
Process notify(CopiesLayer<Ways>& d, GpuId gpu) {
    MoeLayer& layer = d.layer;
    const Communicating communicating(layer.card(gpu));
    co_await layer.host(gpu).launch(2);  // the kernel that counts, the one that tells
    const double choices = static_cast<double>(layer.rows_of(gpu).size());
    co_await run_stream(layer.card(gpu), {.read = 8 * choices, .written = choices},
                        KernelName::counts);
    for (std::uint32_t step = 1; step < layer.gpus.count(); ++step) {
        const auto peer = static_cast<GpuId>((gpu + step) % layer.gpus.count());
        d.counts.tell(gpu, peer, 0, d.ways.announcement(gpu, peer, d.lanes[gpu]),
                      d.ways.announcement_bytes(gpu, peer));
    }
    co_await d.counts.arrived(gpu, 0, layer.gpus.count() - 1);
    d.ways.expect(gpu, d.ways.announcement(gpu, gpu, d.lanes[gpu]));
    for (const sim::Received& told : d.counts.take_messages(gpu, 0)) {
        d.ways.expect(gpu, told.message.counts);
    }
    co_await layer.endpoint(gpu).delay(layer.system.barrier);
}

/// Copies of received tokens to all their experts here, or (`out` false) the sums of what those
/// made.
Process reorder_copies(MoeLayer& layer, GpuId gpu, const std::vector<Rows>& received, bool out);

template <class Ways>
Process run_copies_layer(CopiesLayer<Ways>& d, GpuId gpu) {
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
    const Bytes row = layer.dispatch_bytes() + d.ways.beside();
    co_await d.ways.dispatch(gpu, std::move(d.lanes[gpu]), row);
    layer.gpus.dispatch_ended(gpu);

    std::vector<Rows> received = d.ways.dispatched(gpu);
    co_await reorder_copies(layer, gpu, received, true);
    const std::vector<std::int64_t> by_expert = rows_by_expert(layer, gpu, received);
    co_await run_grouped_experts(layer, gpu, by_expert);
    layer.experts_ended(gpu);
    for (Rows& some : received) compute(layer, gpu, some);
    co_await reorder_copies(layer, gpu, received, false);

    co_await layer.host(gpu).launch(1);
    layer.gpus.combine_began(gpu);
    co_await endpoint.delay(layer.system.combine_start);
    co_await d.ways.combine(gpu, std::move(received), layer.combine_bytes() + kCount);
    layer.gpus.combine_ended(gpu);
    for (const Rows& some : d.ways.combined(gpu)) take_back(layer, gpu, some);
    co_await endpoint.until(d.shared, 1);
    co_await layer.finish(gpu);
}

/// Ways of a CopiesLayer whose copies are forwarded between nodes, after counts are told.
template <ForwardingSms (*sms)(const MoeLayer&)>
struct CountedWays : ForwardedExchange {
    explicit CountedWays(MoeLayer& of) : ForwardedExchange(of, sms), layer(of) {}
    Bytes announcement_bytes(GpuId, GpuId to) const { return bytes_of_counts(layer, to); }
    Bytes beside() const { return bytes_of_choices(layer); }
    MoeLayer& layer;
};

/// Rows pushed in chunks through queues between pairs of SMs, as DeepEP's normal kernels do: half
/// of the kernel's SMs read rows and store them into queues on their peers, the other half empty
/// their own GPU's queues. A channel is one such pair, and has a share of the tokens.
///
/// A sending SM divides its warps evenly over its peers, so that each peer's lane goes by itself:
///     tokens · push_token + rows · (push_row + bytes · GPUs / push),
/// however little the other lanes have to do (Gpu::exchange). On the way out all tokens of the
/// channel are looked at, on the way back only rows that go. A receiving SM copies rows into their
/// buffer, or adds up the copies of a token.
class ChunkedExchange {
  public:
    /// `sums`: receivers add up the copies of each of their GPU's tokens.
    ChunkedExchange(MoeLayer& layer, const char* name, bool sums);

    int channels() const { return channels_; }
    /// What a GPU tells another of its lanes: copies by channel; and what follows when it heard so.
    std::vector<std::int64_t> announcement(GpuId to, const Lanes& lanes) const;
    void expect(GpuId gpu, const std::vector<std::int64_t>& announced);
    /// What a GPU sent will come back to it.
    void expect_return(GpuId from, const Lanes& lanes);
    /// The kernel of one GPU: holds its SMs until everything is sent and received. `bytes` is what
    /// a copy takes on the wire; what stays on the GPU passes the SMs, too.
    Process run(GpuId gpu, Lanes lanes, Bytes bytes);
    /// After run: by channel, from all peers in turn.
    std::vector<Rows> received(GpuId gpu);

  private:
    struct Expected {
        std::int64_t messages = 0;
        std::int64_t copies = 0;
    };

    Process send(GpuId gpu, std::size_t channel, std::size_t peer, Rows rows, Bytes bytes);
    Process receive(GpuId gpu, std::size_t channel, Bytes bytes);
    double tokens_of(GpuId gpu, std::size_t channel) const;

    MoeLayer& layer_;
    bool sums_;
    int channels_;
    Mail mail_;
    std::vector<std::vector<Expected>> expected_;  ///< [gpu][channel]
    sim::CounterId done_;                          ///< lanes and receivers of a GPU
};

}  // namespace moehub::systems
