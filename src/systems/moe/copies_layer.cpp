#include "systems/moe/copies_layer.hpp"

namespace moehub::systems {

Bytes bytes_of_counts(const MoeLayer& layer, GpuId peer) {
    return kCount * (1 + static_cast<Bytes>(layer.experts_of(peer).size()));
}

Bytes bytes_of_choices(const MoeLayer& layer) {
    constexpr Bytes kChoice = 12;
    return kCount + kChoice * layer.top_k();
}

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

Process reorder_copies(MoeLayer& layer, GpuId gpu, const std::vector<Rows>& received, bool out) {
    if (!layer.options.compute) co_return;
    std::int64_t copies = 0;
    for (const Rows& some : received) copies += copies_in(some);
    const std::int64_t rows = count_rows(received);
    co_await layer.host(gpu).launch(1);
    if (rows == 0) co_return;
    const auto sent = static_cast<double>(out ? layer.dispatch_bytes() : layer.combine_bytes());
    const double wide = static_cast<double>(rows) * expert_bytes(layer);
    const double narrow = static_cast<double>(copies) * sent;
    const Traffic expand{.read = narrow, .written = wide};
    const Traffic sum{.read = static_cast<double>(rows * layer.row_bytes()), .written = narrow};
    co_await run_stream(layer.card(gpu), out ? expand : sum,
                        out ? KernelName::reorder : KernelName::weighted_sum);
}

}  // namespace moehub::systems
