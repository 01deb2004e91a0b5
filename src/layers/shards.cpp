#include "layers/shards.hpp"

#include "layers/copies.hpp"

namespace moehub::layers {

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
