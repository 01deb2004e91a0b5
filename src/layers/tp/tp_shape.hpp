/// What a tensor-parallel sub-layer multiplies, and the pieces that its rows are cut into.
#pragma once
#include <moehub/tp.hpp>

#include <algorithm>
#include <cstdint>

namespace moehub::layers {

struct TpShape {
    std::int64_t hidden = 0;
    std::int64_t before = 0;   ///< inner width of the first GEMM, over all GPUs; 0: there is none
    std::int64_t after = 0;    ///< columns of the second, over all GPUs; 0: there is none
    bool after_whole = false;  ///< every GPU computes all of these columns
    bool backward = false;
};

TpShape tp_shape(const Model& model, SubLayer part);

/// One GPU's share of a width that is cut over GPUs. Shares differ by one at most.
inline std::int64_t share_of(std::int64_t width, std::uint32_t gpu, std::uint32_t gpus) {
    return width * (gpu + 1) / gpus - width * gpu / gpus;
}

/// Rows of a tensor-parallel layer in pieces: one GPU, a piece's home, adds up its rows, normalises
/// them, and is asked for them. All are as long, but for the last; homes have as many, but for
/// those at the end, which may have one less or none.

/// Which pieces are whose.
enum class Homes {
    blockwise,  ///< a GPU's pieces follow one another, as a collective cuts a buffer
    in_turn,    ///< piece after piece, so that all homes have work from the start
};

class Pieces {
  public:
    static constexpr std::uint32_t kMostRows = 128;  ///< rows of a tile

    Pieces(std::int64_t rows, std::uint32_t gpus, Homes homes)
        : rows_(static_cast<std::uint32_t>(rows)),
          gpus_(gpus),
          each_((rows_ - 1) / (kMostRows * gpus) + 1),
          size_((rows_ - 1) / (each_ * gpus) + 1),
          count_((rows_ - 1) / size_ + 1),
          homes_(homes) {}

    std::uint32_t count() const { return count_; }
    std::uint32_t each() const { return each_; }  ///< most pieces of a GPU
    std::uint32_t size() const { return size_; }  ///< rows of each but the last
    std::uint32_t begin(std::uint32_t piece) const { return piece * size_; }
    std::uint32_t end(std::uint32_t piece) const { return std::min(rows_, begin(piece + 1)); }
    std::uint32_t rows(std::uint32_t piece) const { return end(piece) - begin(piece); }
    std::uint16_t home(std::uint32_t piece) const {
        return static_cast<std::uint16_t>(homes_ == Homes::in_turn ? piece % gpus_ : piece / each_);
    }
    /// The home's i-th piece; `count()` or more where it has fewer.
    std::uint32_t of(std::uint32_t home, std::uint32_t i) const {
        return homes_ == Homes::in_turn ? i * gpus_ + home : home * each_ + i;
    }
    std::uint32_t piece_of(std::uint32_t row) const { return row / size_; }

  private:
    std::uint32_t rows_;
    std::uint32_t gpus_;
    std::uint32_t each_;
    std::uint32_t size_;
    std::uint32_t count_;
    Homes homes_;
};

}  // namespace moehub::layers
