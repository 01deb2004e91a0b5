/// The two GEMMs of a tensor-parallel sub-layer by row blocks: the first tells of pieces whose
/// partial sums are made, the second starts on pieces as they come.
#pragma once
#include "layers/tp/tp_layer.hpp"
#include "sim/gpu/row_gemm.hpp"

#include <functional>

namespace moehub::layers {

/// Row blocks of a GEMM against pieces. Counts, for each of one kind, those of the other that it
/// overlaps and that are still missing.
class Overlaps {
  public:
    Overlaps(const Pieces& pieces, std::uint32_t rows, std::uint32_t block_rows);

    std::uint32_t blocks() const { return blocks_; }
    /// Calls `complete(piece)` for each piece whose last missing block this is.
    template <class Complete>
    void block_done(std::uint32_t block, Complete complete) {
        for (std::uint32_t piece = first_piece(block); piece <= last_piece(block); ++piece)
            if (--blocks_left_[piece] == 0) complete(piece);
    }
    /// … `complete(block)` for each block whose last missing piece this is.
    template <class Complete>
    void piece_done(std::uint32_t piece, Complete complete) {
        for (std::uint32_t block = first_block(piece); block <= last_block(piece); ++block)
            if (--pieces_left_[block] == 0) complete(block);
    }
    std::uint32_t first_block(std::uint32_t piece) const {
        return pieces_.begin(piece) / block_rows_;
    }
    std::uint32_t last_block(std::uint32_t piece) const {
        return (pieces_.end(piece) - 1) / block_rows_;
    }
    std::uint32_t first_piece(std::uint32_t block) const {
        return pieces_.piece_of(block * block_rows_);
    }
    std::uint32_t last_piece(std::uint32_t block) const {
        return pieces_.piece_of(std::min(rows_, (block + 1) * block_rows_) - 1);
    }

  private:
    const Pieces& pieces_;
    std::uint32_t rows_;
    std::uint32_t block_rows_;
    std::uint32_t blocks_;
    std::vector<std::uint32_t> blocks_left_;  ///< by piece
    std::vector<std::uint32_t> pieces_left_;  ///< by block
};

class FirstGemm {
  public:
    /// `made(piece)`: its partial sums lie in memory, and in the books. On so many SMs; row blocks
    /// in their order, from the one of `first_piece` on and around.
    using Made = std::function<void(std::uint32_t piece)>;
    FirstGemm(TpLayer& layer, GpuId gpu, int sms, Made made, std::uint32_t first_piece = 0);

    /// As a kernel: launch, all row blocks, end.
    Process run();

    // Block by block, for who decides when.
    const GemmPlan& plan() const { return plan_; }
    const Overlaps& overlaps() const { return overlaps_; }
    void use_sms(int sms) { gemm_.use_sms(sms); }
    Process launch() {
        return run_for(layer_.gpus.card(gpu_), plan_.start, KernelName::first_gemm);
    }
    void start(std::uint32_t block) { gemm_.start(block, 1); }
    Process finish() { return gemm_.finish(layer_.rows()); }
    /// Row blocks that fill the card.
    std::int64_t blocks_at_once() const {
        const std::int64_t columns = plan_.tiles_across * plan_.split;
        return (layer_.gpus.card(gpu_).gpu.sms - 1) / columns + 1;
    }
    /// `co_await gemm.ended(n);` goes on when so many row blocks are done.
    sim::Endpoint::Until ended(std::int64_t blocks) { return gemm_.ended(blocks); }

  private:
    void block_done(std::uint32_t block);

    TpLayer& layer_;
    GpuId gpu_;
    Made made_;
    GemmPlan plan_;
    Overlaps overlaps_;
    sim::RowGemm gemm_;
};

class SecondGemm {
  public:
    SecondGemm(TpLayer& layer, GpuId gpu, int sms);

    const GemmPlan& plan() const { return plan_; }
    Process launch() {
        return run_for(layer_.gpus.card(gpu_), plan_.start, KernelName::second_gemm);
    }
    /// The rows of a piece are there: blocks that have all theirs start.
    void came(std::uint32_t piece);
    void use_sms(int sms) { gemm_.use_sms(sms); }
    Process finish() { return gemm_.finish(layer_.rows()); }

  private:
    TpLayer& layer_;
    GpuId gpu_;
    GemmPlan plan_;
    Overlaps overlaps_;
    sim::RowGemm gemm_;
};

}  // namespace moehub::layers
