/// Rows of a tensor-parallel layer in pieces: one GPU, a piece's home, adds up its rows, normalises
/// them, and is asked for them. All homes have as many pieces; with fewer rows than GPUs some have
/// none.
#pragma once
#include <algorithm>
#include <cstdint>

namespace moehub::layers {

/// Which pieces are whose.
enum class Homes {
    blockwise,  ///< a GPU's pieces follow one another, as a collective cuts a buffer
    in_turn,    ///< piece after piece, so that all homes have work from the start
};

class Pieces {
  public:
    static constexpr std::int64_t kMostRows = 128;  ///< a tile's

    Pieces(std::int64_t rows, std::uint32_t gpus, Homes homes)
        : rows_(rows),
          gpus_(gpus),
          each_(static_cast<std::uint32_t>((rows - 1) / (kMostRows * gpus) + 1)),
          count_(static_cast<std::uint32_t>(std::min<std::int64_t>(rows, each_ * gpus))),
          homes_(homes) {}

    std::uint32_t count() const { return count_; }
    std::uint32_t each() const { return each_; }  ///< of a GPU, at most
    std::uint32_t begin(std::uint32_t piece) const {
        return static_cast<std::uint32_t>(rows_ * piece / count_);
    }
    std::uint32_t end(std::uint32_t piece) const { return begin(piece + 1); }
    std::uint32_t rows(std::uint32_t piece) const { return end(piece) - begin(piece); }
    std::uint16_t home(std::uint32_t piece) const {
        return static_cast<std::uint16_t>(homes_ == Homes::in_turn ? piece % gpus_ : piece / each_);
    }
    /// The home's i-th piece; `count()` or more where it has fewer.
    std::uint32_t of(std::uint32_t home, std::uint32_t i) const {
        return homes_ == Homes::in_turn ? i * gpus_ + home : home * each_ + i;
    }
    /// Which piece a row is in.
    std::uint32_t piece_of(std::uint32_t row) const {
        auto piece = static_cast<std::uint32_t>(std::int64_t{row} * count_ / rows_);
        while (end(piece) <= row) ++piece;
        while (begin(piece) > row) --piece;
        return piece;
    }

  private:
    std::int64_t rows_;
    std::uint32_t gpus_;
    std::uint32_t each_;
    std::uint32_t count_;
    Homes homes_;
};

}  // namespace moehub::layers
