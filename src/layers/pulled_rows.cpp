#include "layers/pulled_rows.hpp"

#include <map>

namespace moehub::layers {

PulledRows::PulledRows(MoeLayer& layer, const RowCounts& counts, const char* name)
    : layer_(layer), counts_(counts), mail_(layer.gpus, name, 0) {}

std::uint64_t PulledRows::key_of(GpuId reader, int expert) const {
    return std::uint64_t{reader} * static_cast<std::uint64_t>(layer_.input.model.experts) +
           static_cast<std::uint64_t>(expert);
}

void PulledRows::offer(GpuId gpu, const std::vector<Rows>& by_peer) {
    for (std::size_t peer = 0; peer < by_peer.size(); ++peer) {
        std::map<int, Rows> by_expert;
        for (const CarriedRow& row : by_peer[peer]) by_expert[row.expert].push_back(row);
        for (auto& [expert, rows] : by_expert) {
            mail_.offer(gpu, key_of(static_cast<GpuId>(peer), expert), std::move(rows));
        }
    }
}

std::int64_t PulledRows::pull(GpuId reader, const Block& block) {
    std::int64_t loads = 0;
    std::int64_t before = 0;  // rows of earlier sources
    for (std::uint32_t i = 0; i < layer_.gpus.count(); ++i) {
        const auto from = static_cast<GpuId>(i);
        const std::int64_t here = counts_.rows(reader, from, block.expert);
        const std::int64_t first = std::max<std::int64_t>(block.rows.first - before, 0);
        const std::int64_t last = std::min(here, block.rows.first + block.rows.count - before);
        before += here;
        if (first >= last) continue;
        Mail::Load load{.from = from, .key = key_of(reader, block.expert)};
        load.range = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first)};
        load.bytes = (last - first) * block.bytes;
        mail_.fetch_under(reader, block.arrived, load);
        ++loads;
    }
    return loads;
}

}  // namespace moehub::layers
