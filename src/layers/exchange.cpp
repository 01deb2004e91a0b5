#include "layers/exchange.hpp"

#include "layers/rows.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::layers {
namespace {

/// GPUs with the same number are together.
template <class Number>
GpuGroups grouped(const MoeLayer& layer, std::size_t groups, Number number) {
    GpuGroups made(groups);
    for (const GpuId gpu : layer.gpus.all())
        made[static_cast<std::size_t>(number(gpu))].push_back(gpu);
    return made;
}

/// Index of `expert` in `experts`, which are in ascending order.
std::size_t position_of(const std::vector<int>& experts, int expert) {
    const auto found = std::lower_bound(experts.begin(), experts.end(), expert);
    return static_cast<std::size_t>(found - experts.begin());
}

}  // namespace

GpuGroups all_together(const MoeLayer& layer) {
    return {layer.gpus.all()};
}

GpuGroups of_a_node(const MoeLayer& layer) {
    const sim::Topology& topology = layer.gpus.fabric.topology();
    return grouped(layer, topology.nodes, [&](GpuId gpu) { return topology.node(gpu); });
}

GpuGroups of_a_rail(const MoeLayer& layer) {
    const sim::Topology& topology = layer.gpus.fabric.topology();
    return grouped(layer, topology.gpus_per_node, [&](GpuId gpu) { return topology.rail(gpu); });
}

GpuGroups of_a_rank(const MoeLayer& layer) {
    return grouped(layer, static_cast<std::size_t>(layer.input.placement.ranks),
                   [&](GpuId gpu) { return layer.rank_of(gpu); });
}

GpuGroups of_a_shard(const MoeLayer& layer) {
    return grouped(layer, static_cast<std::size_t>(layer.shards()),
                   [&](GpuId gpu) { return layer.shard_of(gpu); });
}

AllToAll::AllToAll(MoeLayer& layer, const char* name, KernelName kernel, const GpuGroups& groups)
    : layer_(layer),
      kernel_(kernel),
      groups_(groups),
      group_(layer.gpus.count()),
      received_(layer.gpus.count(), std::vector<Rows>(layer.gpus.count())) {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        within_.emplace_back(layer.gpus.fabric, groups_[i], name);
        for (const GpuId gpu : groups_[i]) group_[gpu] = i;
    }
}

Process AllToAll::exchange(GpuId gpu, std::vector<Rows> rows, Bytes bytes) {
    std::vector<Bytes> by_peer;
    for (const Rows& some : rows) by_peer.push_back(bytes * static_cast<Bytes>(some.size()));
    return exchange(gpu, std::move(rows), std::move(by_peer));
}

Process AllToAll::exchange(GpuId gpu, std::vector<Rows> rows, std::vector<Bytes> bytes) {
    const Communicating communicating(layer_.card(gpu));
    std::vector<sim::Parcel> parcels;
    for (const GpuId peer : peers(gpu))
        parcels.push_back({bytes[peer], {peer == gpu ? Rows{} : std::move(rows[peer]), {}}});
    for (Rows& some : received_[gpu]) some.clear();
    sim::Endpoint& endpoint = layer_.endpoint(gpu);
    const Ps own = endpoint.copy_in_memory(bytes[gpu]);
    received_[gpu][gpu] = std::move(rows[gpu]);
    co_await exchange_parcels(gpu, std::move(parcels));
    co_await endpoint.delay(own - endpoint.now());
}

Process AllToAll::gather(GpuId gpu, const Rows& rows, Bytes bytes) {
    const Communicating communicating(layer_.card(gpu));
    std::vector<sim::Parcel> parcels;
    for (const GpuId peer : peers(gpu))
        parcels.push_back({bytes, {peer == gpu ? Rows{} : rows, {}}});
    for (Rows& some : received_[gpu]) some.clear();
    received_[gpu][gpu] = rows;
    co_await exchange_parcels(gpu, std::move(parcels));
}

Process AllToAll::exchange_parcels(GpuId gpu, std::vector<sim::Parcel> parcels) {
    const sim::Launched launched(layer_.card(gpu), kernel_);
    sim::Communicator& within = within_[group_[gpu]];
    co_await sim::exchange(within, gpu, std::move(parcels));
    for (sim::Received& from : within.received(gpu)) {
        Rows& some = received_[gpu][from.from];
        some.insert(some.end(), from.message.rows.begin(), from.message.rows.end());
    }
}

Rows AllToAll::received_from_all(GpuId gpu) const {
    Rows all;
    for (const Rows& some : received_[gpu]) all.insert(all.end(), some.begin(), some.end());
    return all;
}

RowCounts::RowCounts(MoeLayer& layer)
    : layer_(layer),
      all_(layer.gpus.fabric, "counts of a peer"),
      told_(layer.gpus.count(), std::vector<std::vector<std::int64_t>>(layer.gpus.count())) {
    if (!layer.backward()) return;
    for (const GpuId source : layer.gpus.all()) {
        std::vector<std::vector<std::int64_t>> counts = counted(source);
        for (std::size_t gpu = 0; gpu < counts.size(); ++gpu)
            told_[gpu][source] = std::move(counts[gpu]);
    }
}

/// What `source` will send to each expert of every GPU, and how many distinct tokens those are.
std::vector<std::vector<std::int64_t>> RowCounts::counted(GpuId source) const {
    std::vector<std::vector<std::int64_t>> counts(layer_.gpus.count());
    std::vector<std::vector<std::uint32_t>> tokens(layer_.gpus.count());
    for (const GpuId gpu : layer_.gpus.all()) counts[gpu].resize(layer_.experts_of(gpu).size() + 1);
    for (const Row& row : layer_.rows_of(source)) {
        for (int shard = 0; shard < layer_.shards(); ++shard) {
            const GpuId gpu = layer_.gpu_of(row.rank, shard);
            ++counts[gpu][position_of(layer_.experts_of(gpu), row.expert)];
            tokens[gpu].push_back(row.token);
        }
    }
    for (std::uint32_t gpu = 0; gpu < counts.size(); ++gpu) {
        std::sort(tokens[gpu].begin(), tokens[gpu].end());
        counts[gpu].back() =
            std::unique(tokens[gpu].begin(), tokens[gpu].end()) - tokens[gpu].begin();
    }
    return counts;
}

Process RowCounts::exchange(GpuId gpu, Bytes bytes) {
    const Communicating communicating(layer_.card(gpu));
    const sim::Launched launched(layer_.card(gpu), KernelName::counts);
    std::vector<sim::Parcel> parcels;
    for (std::vector<std::int64_t>& counts : counted(gpu))
        parcels.push_back({bytes, {{}, std::move(counts)}});
    told_[gpu][gpu] = parcels[gpu].message.counts;
    co_await sim::tell(all_, gpu, std::move(parcels));
    for (sim::Received& from : all_.received(gpu))
        told_[gpu][from.from] = std::move(from.message.counts);
}

std::int64_t RowCounts::rows(GpuId gpu, GpuId source, int expert) const {
    return told(gpu, source)[position_of(layer_.experts_of(gpu), expert)];
}

std::int64_t RowCounts::tokens(GpuId gpu, GpuId source) const {
    return told(gpu, source).back();
}

const std::vector<std::int64_t>& RowCounts::told(GpuId gpu, GpuId source) const {
    if (told_[gpu][source].empty()) throw std::logic_error("counts are read that nobody has told");
    return told_[gpu][source];
}

std::int64_t RowCounts::rows(GpuId gpu, int expert) const {
    std::int64_t sum = 0;
    for (const GpuId source : layer_.gpus.all()) sum += rows(gpu, source, expert);
    return sum;
}

std::int64_t RowCounts::rows(GpuId gpu) const {
    std::int64_t sum = 0;
    for (const int expert : layer_.experts_of(gpu)) sum += rows(gpu, expert);
    return sum;
}

Shards::Shards(MoeLayer& layer)
    : layer_(layer),
      gather_(layer, "rows of experts that are shared", KernelName::dispatch, of_a_rank(layer)),
      scatter_(layer, "results of experts that are shared", KernelName::combine, of_a_rank(layer)) {
}

Process Shards::gather(GpuId gpu, Rows rows, Bytes bytes) {
    const Bytes all = bytes * static_cast<Bytes>(rows.size());
    co_await gather_.gather(gpu, rows, all);
}

Process Shards::scatter_sums(GpuId gpu, const Rows& results) {
    std::vector<Rows> by_receiver(layer_.gpus.count());
    for (const CarriedRow& row : results) {
        const int shard = layer_.shard_of(layer_.home_of(row.token));
        by_receiver[layer_.gpu_of(layer_.rank_of(gpu), shard)].push_back(row);
    }
    const Bytes width = layer_.combine_bytes();
    // What stays is read where it lies, by the kernel that adds up.
    std::vector<Bytes> bytes(by_receiver.size());
    for (std::size_t peer = 0; peer < bytes.size(); ++peer)
        if (peer != gpu) bytes[peer] = width * static_cast<Bytes>(by_receiver[peer].size());
    const auto own = static_cast<double>(width) * static_cast<double>(by_receiver[gpu].size());
    co_await scatter_.exchange(gpu, std::move(by_receiver), std::move(bytes));
    const Ps added = layer_.card(gpu).hbm.take((layer_.shards() + 1) * own);
    co_await layer_.endpoint(gpu).delay(added - layer_.endpoint(gpu).now());
}

std::vector<Rows> Shards::sums(GpuId gpu) const {
    return rows_by_home(layer_, scatter_.received_from_all(gpu));
}

std::vector<Bytes> Shards::sum_bytes(const std::vector<Rows>& sums) const {
    std::vector<Bytes> bytes;
    for (const Rows& some : sums)
        bytes.push_back(layer_.combine_bytes() * static_cast<Bytes>(some.size()) / layer_.shards());
    return bytes;
}

void Shards::take_back(const Rows& sums) {
    const std::size_t each = sums.size() / static_cast<std::size_t>(layer_.shards());
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const CarriedRow& row = sums[i];
        layer_.books.returned(row.token, row.choice, static_cast<int>(i / each), row.numbers);
        layer_.note_returned(row.token, row.choice);
    }
}

}  // namespace moehub::layers
