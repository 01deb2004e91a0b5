// Pangu Ultra MoE's hierarchical exchange: all tokens go to all nodes, each to the GPUs of its
// home's rail (all-gather), and from there inside each node to their experts (all-to-all), a row
// for each. Back the same way: a node's results go to the GPU of the rail, which adds them up, and
// the sums of all nodes are added up at home (reduce-scatter). Between nodes every GPU sends and
// receives the same, however uneven the experts are, and NICs carry a token once for each node
// whether it has experts there or not.
#include "systems/moe/host_steps.hpp"

namespace moehub::systems {
namespace hierarchical {

constexpr Bytes kChoice = 12;  ///< bytes of an expert's number and gate weight

struct Hierarchical {
    bool several_nodes() const { return layer.input.machine.nodes > 1; }
    std::uint32_t node(GpuId gpu) const { return layer.gpus.fabric.topology().node(gpu); }

    MoeLayer& layer;
    RowCounts counts{layer};
    AllToAll gather{layer, "tokens of a rail", KernelName::dispatch, of_a_rail(layer)};
    AllToAll dispatch{layer, "rows of a node", KernelName::dispatch, of_a_node(layer)};
    AllToAll combine{layer, "results of a node", KernelName::combine, of_a_node(layer)};
    AllToAll scatter{layer, "sums of a rail", KernelName::combine, of_a_rail(layer)};
    RowTargets targets{layer};
};

/// All of the GPU's tokens, with their choices, to its rail in every other node.
Process gather_tokens(Hierarchical& h, GpuId gpu) {
    MoeLayer& layer = h.layer;
    std::vector<Rows> rows(layer.gpus.count());
    for (const Row& row : layer.rows_of(gpu)) {
        const CarriedRow one = carried(layer, row);
        for (const GpuId peer : h.gather.peers(gpu))
            if (h.node(peer) == h.node(h.targets.of(one))) rows[peer].push_back(one);
    }
    const Bytes token = layer.dispatch_bytes() + kChoice * layer.top_k();
    std::vector<Bytes> bytes(layer.gpus.count(), token * layer.tokens(gpu));
    bytes[gpu] = 0;  // they are there
    if (h.several_nodes()) co_await layer.host(gpu).launch(1);
    if (h.several_nodes()) {
        co_await h.gather.exchange(gpu, std::move(rows), std::move(bytes));
    } else {
        h.gather.received(gpu)[gpu] = std::move(rows[gpu]);
    }
}

/// Tokens that the GPU passes on in its node: its own, and those of its rail.
std::int64_t tokens_of_rail(Hierarchical& h, GpuId gpu) {
    std::int64_t tokens = 0;
    for (const GpuId peer : h.gather.peers(gpu)) tokens += h.layer.tokens(peer);
    return tokens;
}

/// In the node: to the experts, sorted by them.
Process dispatch(Hierarchical& h, GpuId gpu) {
    MoeLayer& layer = h.layer;
    std::vector<Rows> rows(layer.gpus.count());
    for (const CarriedRow& row : h.gather.received_from_all(gpu))
        rows[h.targets.of(row)].push_back(row);
    co_await layer.host(gpu).launch(2);  // order of the rows, permutation
    co_await small_kernels(layer, gpu, 1);
    co_await reorder(layer, gpu, count_rows(rows), tokens_of_rail(h, gpu), layer.dispatch_bytes());
    co_await layer.host(gpu).launch(1);
    co_await h.dispatch.exchange(gpu, std::move(rows), layer.dispatch_bytes());
}

/// Weighted sums of tokens from so many rows, where their tokens came from.
Process add_up(MoeLayer& layer, GpuId gpu, std::int64_t rows, std::int64_t sums) {
    if (!layer.options.compute) co_return;
    co_await layer.host(gpu).launch(1);
    const auto width = static_cast<double>(layer.combine_bytes());
    co_await run_stream(
        layer.card(gpu),
        {.read = static_cast<double>(rows) * width, .written = static_cast<double>(sums) * width},
        KernelName::weighted_sum);
}

/// Results to the GPUs that passed their rows on, and what they add up to home.
Process combine(Hierarchical& h, GpuId gpu, const Rows& results) {
    MoeLayer& layer = h.layer;
    const sim::Topology& topology = layer.gpus.fabric.topology();
    std::vector<Rows> back(layer.gpus.count());
    for (const CarriedRow& row : results) {
        const std::uint32_t rail = topology.rail(layer.home_of(row.token));
        back[h.node(gpu) * topology.gpus_per_node + rail].push_back(row);
    }
    co_await layer.host(gpu).launch(1);
    co_await h.combine.exchange(gpu, std::move(back), layer.combine_bytes());
    const Rows passed = h.combine.received_from_all(gpu);
    const auto rows = static_cast<std::int64_t>(passed.size());
    co_await add_up(layer, gpu, rows, tokens_of_rail(h, gpu));
    if (!h.several_nodes()) {
        take_back(layer, gpu, passed);
        co_return;
    }
    std::vector<Bytes> bytes(layer.gpus.count());
    for (const GpuId peer : h.scatter.peers(gpu))
        if (peer != gpu) bytes[peer] = layer.combine_bytes() * layer.tokens(peer);
    co_await layer.host(gpu).launch(1);
    co_await h.scatter.exchange(gpu, rows_by_home(layer, passed), std::move(bytes));
    const auto sums = static_cast<double>(layer.combine_bytes() * layer.tokens(gpu));
    const Ps added = layer.card(gpu).hbm.take((topology.nodes + 1) * sums);
    co_await layer.endpoint(gpu).delay(added - layer.endpoint(gpu).now());
    take_back(layer, gpu, h.scatter.received_from_all(gpu));
}

Process run_layer(Hierarchical& h, GpuId gpu) {
    MoeLayer& layer = h.layer;
    // Operators: order of the rows, rows for each expert.
    co_await exchange_counts(layer, h.counts, gpu,
                             {.operators = 2,
                              .kernels = 2,
                              .own_launch = true,
                              .bytes = kCount * layer.input.model.experts});
    co_await quantise_tokens(layer, gpu);

    layer.gpus.dispatch_began(gpu);
    co_await gather_tokens(h, gpu);
    co_await dispatch(h, gpu);
    layer.gpus.dispatch_ended(gpu);
    Rows rows = h.dispatch.received_from_all(gpu);
    co_await run_received(layer, gpu, rows);

    layer.gpus.combine_began(gpu);
    const auto rows_in = static_cast<std::int64_t>(rows.size());
    co_await sort_received(layer, gpu, rows_in, layer.combine_bytes());
    co_await combine(h, gpu, rows);
    layer.gpus.combine_ended(gpu);
    co_await finish_with_shared(layer, gpu);
}

}  // namespace hierarchical

LayerResult run_hierarchical(const Job& job) {
    return run_program(job, "hierarchical layer", hierarchical::run_layer);
}

}  // namespace moehub::systems
