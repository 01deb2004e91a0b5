#include "systems/copies.hpp"

#include <algorithm>

namespace moehub::systems {
namespace {

constexpr Bytes kScaled = 128;  ///< elements with one scale (DeepSeek-V3 technical report)
constexpr Bytes kScale = 4;     ///< bytes of one

}  // namespace

std::vector<Buffer> rows_by_peer(const Layer& layer, GpuId gpu) {
    std::vector<Buffer> buffers(layer.gpus());
    for (const Row& row : layer.rows_of(gpu)) {
        buffers[layer.gpu_of(row.rank, 0)].push_back(
            {row.token, row.slot, row.expert, layer.books.input(row.token)});
    }
    for (Buffer& buffer : buffers) {
        std::sort(buffer.begin(), buffer.end(), [](const BufferedRow& a, const BufferedRow& b) {
            return a.token != b.token ? a.token < b.token : a.slot < b.slot;
        });
    }
    return buffers;
}

std::int64_t copies_in(const Buffer& rows) {
    std::int64_t copies = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i == 0 || rows[i].token != rows[i - 1].token) ++copies;
    }
    return copies;
}

std::vector<Buffer> cut(const Buffer& rows, std::int64_t copies) {
    std::vector<Buffer> pieces;
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

std::vector<Buffer> rows_by_home(const Layer& layer, const Buffer& rows) {
    std::vector<Buffer> buffers(layer.gpus());
    for (const BufferedRow& row : rows) buffers[layer.home_of(row.token)].push_back(row);
    return buffers;
}

Bytes scale_bytes(const Layer& layer) {
    if (layer.system.dispatch_element > 1) return 0;
    return (layer.input.model.hidden + kScaled - 1) / kScaled * kScale;
}

}  // namespace moehub::systems
