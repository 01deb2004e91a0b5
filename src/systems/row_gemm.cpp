#include "systems/row_gemm.hpp"

namespace moehub::systems {
RowGemm::RowGemm(sim::Card& card, GemmPlan plan, BlockDone done)
    : card_(card),
      plan_(std::move(plan)),
      done_(std::move(done)),
      tiles_per_block_(static_cast<std::uint32_t>(plan_.tiles_across * plan_.split)),
      ended_(card.endpoint.add_counter("row blocks of an expert's GEMM")) {}

std::uint32_t RowGemm::blocks_of(std::int64_t rows) const {
    return rows == 0 ? 0 : static_cast<std::uint32_t>((rows - 1) / plan_.tile_rows + 1);
}

void RowGemm::start(std::uint32_t row_block) {
    if (row_block >= left_.size()) left_.resize(row_block + 1);
    left_[row_block] = tiles_per_block_;
    for (std::uint32_t i = 0; i < tiles_per_block_; ++i) {
        card_.blocks.submit({&plan_.runs.front().work, &plan_.rates, this, row_block},
                            sim::Priority::normal);
    }
}

void RowGemm::start_all(std::int64_t rows) {
    for (std::uint32_t block = 0; block < blocks_of(rows); ++block) start(block);
}

sim::Process RowGemm::run(std::int64_t rows) {
    if (rows == 0) co_return;
    co_await run_for(card_, plan_.start);
    start_all(rows);
    co_await finish(rows);
}

/// Parts of a split sum are final when the kernel that adds them has run, at the very end.
void RowGemm::block_done(std::uint32_t row_block) {
    if (--left_[row_block] > 0) return;
    card_.endpoint.increase(ended_);
    if (done_ && plan_.split == 1) done_(row_block);
}

sim::Process RowGemm::finish(std::int64_t rows) {
    const std::uint32_t blocks = blocks_of(rows);
    co_await card_.endpoint.until(ended_, blocks);
    co_await run_for(card_, plan_.finish);
    if (!done_ || plan_.split == 1) co_return;
    for (std::uint32_t block = 0; block < blocks; ++block) done_(block);
}

}  // namespace moehub::systems
