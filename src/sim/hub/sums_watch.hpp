/// Tells a GPU's programs when sums are complete: counts, piece by piece, the bytes that a region
/// of sums has taken in.
#pragma once
#include "sim/hub/row_sums.hpp"
#include "sim/transfer.hpp"

#include <vector>

namespace moehub::sim {

class Endpoint;

/// Pieces follow one another from the region's first row on; the last may be shorter.
struct SumsWatch {
    Bytes piece = 0;                  ///< bytes of a piece: whole rows
    std::uint32_t contributions = 0;  ///< GPUs whose sums make it complete
    CounterId first = kNoCounter;     ///< of as many counters as there are pieces
};

class SumsWatcher {
  public:
    SumsWatcher() = default;  ///< of a region that nobody watches
    SumsWatcher(const RowSums& sums, const SumsWatch& watch);

    /// What came for a stretch, for `answers` GPUs, in memory at `visible`.
    void count(Endpoint& gpu, const RowStretch& stretch, std::uint32_t answers, Ps visible);

  private:
    struct Piece {
        Bytes missing = 0;  ///< over all contributions
        Ps visible = 0;     ///< the last of what came
    };

    SumsWatch watch_;
    Bytes row_bytes_ = 0;
    std::uint32_t first_row_ = 0;
    std::vector<Piece> pieces_;
};

}  // namespace moehub::sim
