/// A GEMM whose row blocks start one by one, when their rows are there, and end one by one.
#pragma once
#include "sim/gpu/execute.hpp"

#include <functional>
#include <vector>

namespace moehub::systems {

class RowGemm final : private sim::BlockOwner {
  public:
    using BlockDone = std::function<void(std::uint32_t row_block)>;

    /// `plan`: of the rows expected; there may be more or fewer row blocks in the end. `done` is
    /// told of each row block whose results are final.
    RowGemm(sim::Card& card, GemmPlan plan, BlockDone done = {});
    RowGemm(const RowGemm&) = delete;

    std::uint32_t block_rows() const { return static_cast<std::uint32_t>(plan_.tile_rows); }
    void start(std::uint32_t row_block);
    void start_all(std::int64_t rows);
    /// Ends when the blocks of this many rows, all started by then or later, are done.
    sim::Process finish(std::int64_t rows);
    /// As a kernel of its own: launch, all row blocks, end.
    sim::Process run(std::int64_t rows);

  private:
    void block_done(std::uint32_t block) override;
    std::uint32_t blocks_of(std::int64_t rows) const;

    sim::Card& card_;
    GemmPlan plan_;
    BlockDone done_;
    std::uint32_t tiles_per_block_;
    sim::CounterId ended_;             ///< row blocks
    std::vector<std::uint32_t> left_;  ///< tiles of each row block
};

}  // namespace moehub::systems
