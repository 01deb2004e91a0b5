#include "layers/copies.hpp"

#include <algorithm>

namespace moehub::layers {
std::vector<Rows> rows_by_peer(const MoeLayer& layer, GpuId gpu) {
    std::vector<Rows> buffers(layer.gpus.count());
    for (const Row& row : layer.rows_of(gpu)) {
        buffers[layer.gpu_of(row.rank, 0)].push_back(
            {row.token, row.choice, row.expert, layer.books.input(row.token)});
    }
    for (Rows& buffer : buffers) {
        std::sort(buffer.begin(), buffer.end(), [](const CarriedRow& a, const CarriedRow& b) {
            return a.token != b.token ? a.token < b.token : a.choice < b.choice;
        });
    }
    return buffers;
}

std::int64_t copies_in(const Rows& rows) {
    std::int64_t copies = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i == 0 || rows[i].token != rows[i - 1].token) ++copies;
    }
    return copies;
}

std::vector<Rows> cut(const Rows& rows, std::int64_t copies) {
    std::vector<Rows> pieces;
    std::int64_t in_piece = copies;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i == 0 || rows[i].token != rows[i - 1].token) {
            if (in_piece == copies) {
                pieces.emplace_back();
                in_piece = 0;
            }
            ++in_piece;
        }
        pieces.back().push_back(rows[i]);
    }
    return pieces;
}

std::vector<Rows> rows_by_home(const MoeLayer& layer, const Rows& rows) {
    std::vector<Rows> buffers(layer.gpus.count());
    for (const CarriedRow& row : rows) buffers[layer.home_of(row.token)].push_back(row);
    return buffers;
}

}  // namespace moehub::layers
