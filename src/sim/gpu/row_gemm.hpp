/// A GEMM whose row blocks start one by one, when their rows are there, and end one by one.
///
/// Weights come from HBM and are shared through L2 by the row blocks that pass a column together,
/// who divide what reading them costs. So the order of tiles matters:
/// - by columns: all row blocks that are ready at one column, then at the next, round and round.
///   Weights are read once a round, results are final late: for a first GEMM.
/// - by rows: a row block at all its columns, then the next. Weights are read for as many row
///   blocks as run at once, results are final early: for a GEMM that sends them away.
/// - by rows that come: the same, where row blocks come one by one over a long time: they share
///   weights only with those that have started and not ended.
#pragma once
#include "sim/gpu/card.hpp"

#include <functional>
#include <map>
#include <set>
#include <vector>

namespace moehub::sim {

enum class TileOrder { by_columns, by_rows, by_rows_that_come };

/// Row blocks that should start together: with fewer, reading weights takes longer than
/// multiplying.
std::uint32_t blocks_at_once(const Gpu& gpu, const GemmPlan& plan);

class RowGemm final : private BlockOwner {
  public:
    using BlockDone = std::function<void(std::uint32_t row_block)>;

    /// `plan` has the tiles; its rows are those expected, and there may be more or fewer row blocks
    /// in the end. `done` is told of each row block whose results are final.
    RowGemm(Card& card, GemmPlan plan, KernelName kernel, TileOrder order, BlockDone done = {});
    RowGemm(const RowGemm&) = delete;

    std::uint32_t blocks_at_once() const { return sim::blocks_at_once(card_.gpu, plan_); }
    std::uint32_t block_rows() const { return static_cast<std::uint32_t>(plan_.tile_rows); }
    /// Limits it to so many SMs from now on.
    void use_sms(int sms);
    /// Weights are read once for all row blocks, as in a GEMM whose rows are all there (run_gemm).
    void keep_weights() { keeps_weights_ = true; }
    /// Begins with this row block and goes around; to be called before any is started.
    void begin_with(std::uint32_t row_block);
    void start(std::uint32_t first_block, std::uint32_t blocks);
    void start_all(std::int64_t rows);
    /// Ends when the blocks of this many rows, all started by then or later, are done.
    Process finish(std::int64_t rows);
    /// `co_await gemm.ended(n);` goes on when so many row blocks are done.
    Endpoint::Until ended(std::int64_t blocks) { return card_.endpoint.until(ended_, blocks); }
    /// Runs as a kernel of its own: launch, all row blocks, end.
    Process run(std::int64_t rows);

  private:
    struct Tile {
        std::uint32_t major;  ///< row block or column, by the order
        std::uint32_t minor;
        auto operator<=>(const Tile&) const = default;
    };

    void block_done(std::uint32_t row_block) override;
    std::uint32_t blocks_of(std::int64_t rows) const;
    void submit_next();
    std::uint32_t sharing(const Tile& tile);
    const TileWork& work_when(std::uint32_t blocks_share);

    Card& card_;
    GemmPlan plan_;
    KernelName kernel_;
    std::size_t launch_ = 0;  ///< launch in the timeline, once a row block has started
    TileOrder order_;
    BlockDone done_;
    int sms_;  ///< SMs that it may use
    bool keeps_weights_ = false;
    std::uint32_t columns_;  ///< tiles of a row block, parts of a split sum included
    std::map<std::uint32_t, TileWork> works_;  ///< tile's work by how many blocks share weights
    std::set<Tile> ready_;                     ///< tiles started and not yet submitted
    Tile last_{};                              ///< tile submitted last
    std::uint32_t sharing_ = 1;                ///< row blocks at the present column
    int running_ = 0;                          ///< tiles submitted and not done
    CounterId ended_;                          ///< counter of row blocks that have ended
    std::vector<std::uint32_t> left_;          ///< tiles left of each row block
    std::uint32_t underway_ = 0;               ///< row blocks that have started and not ended
};

}  // namespace moehub::sim
