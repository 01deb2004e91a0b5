// What users of a collective library write: rows sorted by the GPU of their expert, an all-to-all
// with uneven counts, grouped GEMMs, an all-to-all back. One row for each expert; gate weights stay
// at home. Between nodes with PXN, as NCCL does: rows first go to the GPU of their own node that is
// on their target's rail, whose NIC they leave by, so that none crosses between rails.
#include "systems/moe/host_steps.hpp"

#include <algorithm>

namespace moehub::systems {
namespace all_to_all {

/// Rows to where they belong: at once, or by the rail of their target.
class RailedAllToAll {
  public:
    RailedAllToAll(MoeLayer& layer, const char* name, KernelName kernel)
        : layer_(layer),
          pxn_(layer.system.pxn && layer.input.machine.nodes > 1),
          direct_(layer, name, kernel, pxn_ ? of_a_node(layer) : all_together(layer)),
          rails_(layer, name, kernel, of_a_rail(layer)) {}

    /// `target(row)` says where a row belongs; ends with `received`.
    template <class Target>
    Process exchange(GpuId gpu, std::vector<Rows> rows, Bytes bytes, Target target) {
        if (!pxn_) {
            co_await direct_.exchange(gpu, std::move(rows), bytes);
            co_return;
        }
        co_await direct_.exchange(gpu, by_rail(gpu, rows), bytes);
        std::vector<Rows> leaving(layer_.gpus.count());
        for (const CarriedRow& row : direct_.received_from_all(gpu))
            leaving[target(row)].push_back(row);
        std::vector<Bytes> sizes;
        for (const Rows& some : leaving) sizes.push_back(bytes * static_cast<Bytes>(some.size()));
        sizes[gpu] = 0;  // they are where they belong
        co_await rails_.exchange(gpu, std::move(leaving), std::move(sizes));
    }
    Rows received(GpuId gpu) const {
        return pxn_ ? rails_.received_from_all(gpu) : direct_.received_from_all(gpu);
    }

  private:
    /// By the GPU of this node that is on the target's rail.
    std::vector<Rows> by_rail(GpuId gpu, const std::vector<Rows>& rows) const {
        const sim::Topology& topology = layer_.gpus.fabric.topology();
        std::vector<Rows> here(rows.size());
        for (std::uint32_t to = 0; to < rows.size(); ++to) {
            Rows& some = here[topology.node(gpu) * topology.gpus_per_node + topology.rail(to)];
            some.insert(some.end(), rows[to].begin(), rows[to].end());
        }
        return here;
    }

    MoeLayer& layer_;
    bool pxn_;
    AllToAll direct_;
    AllToAll rails_;
};

struct AllToAllLayer {
    MoeLayer& layer;
    RowCounts counts{layer};
    RailedAllToAll dispatch{layer, "rows of a peer", KernelName::dispatch};
    RailedAllToAll combine{layer, "results of a peer", KernelName::combine};
    RowTargets targets{layer};
};

/// Bytes of a count for each of the most experts that a GPU has.
Bytes bytes_of_counts(const MoeLayer& layer) {
    std::size_t slots = 1;
    for (std::uint32_t peer = 0; peer < layer.gpus.count(); ++peer)
        slots = std::max(slots, layer.experts_of(static_cast<GpuId>(peer)).size());
    return kCount * static_cast<Bytes>(slots);
}

Process run_layer(AllToAllLayer& a, GpuId gpu) {
    MoeLayer& layer = a.layer;
    Host& host = layer.host(gpu);
    // Operators: order of the rows, rows for each expert.
    co_await exchange_counts(
        layer, a.counts, gpu,
        {.operators = 2, .kernels = 2, .own_launch = true, .bytes = bytes_of_counts(layer)});
    co_await quantise_tokens(layer, gpu);

    layer.gpus.dispatch_began(gpu);
    std::vector<Rows> sent = permuted(layer, gpu);
    co_await host.launch(1);
    co_await reorder(layer, gpu, count_rows(sent), layer.tokens(gpu), layer.dispatch_bytes());
    co_await host.launch(1);
    const auto to_expert = [&](const CarriedRow& row) { return a.targets.of(row); };
    co_await a.dispatch.exchange(gpu, std::move(sent), layer.dispatch_bytes(), to_expert);
    layer.gpus.dispatch_ended(gpu);

    Rows rows = a.dispatch.received(gpu);
    co_await run_received(layer, gpu, rows);

    layer.gpus.combine_began(gpu);
    const auto rows_in = static_cast<std::int64_t>(rows.size());
    co_await sort_received(layer, gpu, rows_in, layer.combine_bytes());
    co_await host.launch(1);
    const auto home = [&](const CarriedRow& row) { return layer.home_of(row.token); };
    co_await a.combine.exchange(gpu, rows_by_home(layer, rows), layer.combine_bytes(), home);
    take_back(layer, gpu, a.combine.received(gpu));
    co_await layer.scale(gpu);
    layer.gpus.combine_ended(gpu);
    co_await finish_with_shared(layer, gpu);
}

}  // namespace all_to_all

LayerResult run_all_to_all(const Job& job) {
    return run_program(job, "all-to-all layer", all_to_all::run_layer);
}

}  // namespace moehub::systems
