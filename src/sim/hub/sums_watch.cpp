#include "sim/hub/sums_watch.hpp"

#include "sim/endpoint.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

SumsWatcher::SumsWatcher(const RowSums& sums, const SumsWatch& watch)
    : watch_(watch), row_bytes_(sums.row_bytes()), first_row_(sums.extent().first) {
    if (watch.piece <= 0 || watch.piece % row_bytes_ != 0) {
        throw std::logic_error("sums are watched by pieces of whole rows");
    }
    for (Bytes left = sums.extent().rows * row_bytes_; left > 0; left -= watch.piece) {
        pieces_.push_back({std::min(left, watch.piece) * watch.contributions});
    }
}

void SumsWatcher::count(Endpoint& gpu, const RowStretch& stretch, std::uint32_t answers,
                        Ps visible) {
    if (pieces_.empty()) return;
    Bytes at = Bytes{stretch.row - first_row_} * row_bytes_ + stretch.offset;
    for (Bytes left = stretch.bytes; left > 0;) {
        const auto number = static_cast<std::size_t>(at / watch_.piece);
        const Bytes here = std::min(left, static_cast<Bytes>(number + 1) * watch_.piece - at);
        Piece& piece = pieces_.at(number);
        piece.visible = std::max(piece.visible, visible);
        piece.missing -= here * answers;
        if (piece.missing < 0) throw std::logic_error("more came for a sum than is expected");
        if (piece.missing == 0) {
            gpu.increase_at(piece.visible, watch_.first + static_cast<CounterId>(number));
        }
        at += here;
        left -= here;
    }
}

}  // namespace moehub::sim
