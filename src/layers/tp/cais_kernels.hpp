/// What thread blocks do under CAIS: they meet their like on all GPUs, reduce pieces into their
/// homes and load them from there with instructions whose requests switches merge.
///
/// Meetings (`coordinate`): before a row block of the first GEMM starts, and before each block of
/// requests, reductions or loads, to a home. The one before a piece is loaded is also how others
/// learn that its home has normalised it, since the home comes only then. Without coordination the
/// home tells them by a multicast flag.
///
/// Throttling: a GPU comes to the next meeting when it starts on a block, so nobody is further
/// ahead than two blocks, each a third of what the tables in front of a home hold. Uncoordinated,
/// SMs have a bounded number of bytes in flight.
#pragma once
#include "layers/tp/tp_pieces.hpp"

namespace moehub::layers {

class CaisKernels {
  public:
    explicit CaisKernels(TpLayer& layer);

    /// Starts the row blocks of the first GEMM in order, each when its group has met.
    Process start_blocks(GpuId gpu, FirstGemm& gemm);
    /// The GPU's partial sums of a piece are made: sends them home.
    Process reduce(GpuId gpu, std::uint32_t piece);
    /// At a piece's home: waits for its sum, and normalises it as blocks of the running kernel.
    Process norm(GpuId gpu, std::uint32_t piece);
    /// The piece is normalised, and its home shares it.
    void normalised(GpuId gpu, std::uint32_t piece);
    /// All pieces, in order, a bounded number at a time; returns when the last is with `gemm`.
    Process load_all(GpuId gpu, SecondGemm& gemm);

    /// `co_await kernels.summed(gpu, piece);` at a home.
    sim::Endpoint::Until summed(GpuId gpu, std::uint32_t piece);
    sim::Endpoint::Until own_made(GpuId gpu, std::uint32_t piece);
    /// Waits until all of the GPU's own reductions are acknowledged.
    Process all_acknowledged(GpuId gpu);
    /// Waits until the second GEMM has a piece.
    sim::Endpoint::Until first_loaded(GpuId gpu) {
        return layer_.gpus.endpoint(gpu).until(loaded_, 1);
    }
    /// Waits until all pieces of the GPU are shared.
    sim::Endpoint::Until all_shared(GpuId gpu, std::int64_t pieces);

  private:
    enum class For : std::uint32_t { launch, reduction, load };
    /// Comes to a meeting of so many GPUs; `met` waits until all have come. Nobody meets
    /// uncoordinated.
    void come(GpuId gpu, For what, std::uint32_t number, std::uint32_t gpus);
    sim::Endpoint::Until met(GpuId gpu, For what, std::uint32_t number);
    Process come_for_row_blocks(GpuId gpu, FirstGemm& gemm);

    /// Requests for all of a piece, block by block, when those of its home before it are posted.
    Process post_all(GpuId gpu, std::uint32_t piece, For what);
    sim::Transfer request(std::uint32_t piece, const TpLayer::Stretch& part, For what) const;
    Process load(GpuId gpu, std::uint32_t piece, SecondGemm& gemm);
    /// The first block of a piece, among all.
    std::uint32_t first_block(std::uint32_t piece) const { return piece * blocks_of_piece_; }

    /// Parts in flight, by the home that they are for.
    struct Window {
        sim::CounterId through = 0;                     ///< by home: parts
        sim::CounterId turn = 0;                        ///< by home: pieces that are all posted
        std::vector<std::vector<std::int64_t>> posted;  ///< [gpu][home]
    };
    Window add_window(const char* name) const;
    Window& window(For what) { return windows_[what == For::load ? 1 : 0]; }
    const Window& window(For what) const { return windows_[what == For::load ? 1 : 0]; }
    /// Uncoordinated, waits until one more part may be in flight; and counts it.
    Process enter(GpuId gpu, GpuId home, For what);
    std::int64_t pieces_at_once() const { return 2 * layer_.gpus.count(); }

    TpLayer& layer_;
    bool coordinate_;
    Bytes part_bytes_;
    std::uint32_t parts_of_block_;
    std::uint32_t blocks_of_piece_;  ///< most blocks of a piece
    std::int64_t parts_in_flight_;   ///< for one home, uncoordinated
    sim::CounterId met_[3];          ///< by what for: the first of so many
    sim::CounterId sums_;            ///< by piece: at its home, others' are all there
    sim::CounterId made_;            ///< by piece: the GPU's own
    sim::CounterId ready_;           ///< by piece: normalised at its home
    sim::CounterId shared_;          ///< pieces of one's own that are normalised
    Window windows_[2];              ///< reductions that are acknowledged, loads that have come
    sim::CounterId answered_;        ///< by piece: parts that have come
    sim::CounterId loaded_;          ///< pieces that are there
    sim::GroupId everyone_ = sim::kNoGroup;
};

}  // namespace moehub::layers
