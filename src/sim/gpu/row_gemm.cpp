#include "sim/gpu/row_gemm.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {

RowGemm::RowGemm(Card& card, GemmPlan plan, KernelName kernel, TileOrder order, BlockDone done)
    : card_(card),
      plan_(std::move(plan)),
      kernel_(kernel),
      order_(order),
      done_(std::move(done)),
      sms_(card.gpu.sms),
      columns_(static_cast<std::uint32_t>(plan_.tiles_across * plan_.split)),
      ended_(card.endpoint.add_counter("row blocks of an expert's GEMM")) {}

std::uint32_t blocks_at_once(const Gpu& gpu, const GemmPlan& plan) {
    if (plan.runs.empty()) return 1;
    const double reading = plan.weight_bytes * gpu.sms / plan.rates.hbm;
    const double multiplying =
        plan.runs.front().work.flops * gpu.sms / (gpu.kernels.tensor_efficiency * gpu.bf16_flops);
    return std::max(1u, static_cast<std::uint32_t>(std::ceil(reading / multiplying)));
}

std::uint32_t RowGemm::blocks_of(std::int64_t rows) const {
    return rows == 0 ? 0 : static_cast<std::uint32_t>((rows - 1) / plan_.tile_rows + 1);
}

void RowGemm::use_sms(int sms) {
    sms_ = sms;
    submit_next();
}

/// Goes on as if the block before this one had just been submitted; the last is before the first.
void RowGemm::begin_with(std::uint32_t row_block) {
    last_ = {row_block - 1, columns_};
}

void RowGemm::start(std::uint32_t first_block, std::uint32_t blocks) {
    const std::uint32_t end = first_block + blocks;
    KernelLog* const log = card_.blocks.kernel_log();
    if (log != nullptr && left_.empty()) launch_ = log->launched(kernel_, card_.endpoint.now());
    if (end > left_.size()) left_.resize(end);
    underway_ += blocks;
    for (std::uint32_t block = first_block; block < end; ++block) {
        left_[block] = columns_;
        for (std::uint32_t column = 0; column < columns_; ++column) {
            ready_.insert(order_ == TileOrder::by_columns ? Tile{column, block}
                                                          : Tile{block, column});
        }
    }
    submit_next();
}

/// Keeps as many tiles with the scheduler as the card can run, and so chooses late what is next.
void RowGemm::submit_next() {
    while (!ready_.empty() && running_ < sms_) {
        auto next = ready_.upper_bound(last_);
        if (next == ready_.end()) next = ready_.begin();
        const Tile tile = *next;
        const TileWork& work = work_when(sharing(tile));
        ready_.erase(next);
        last_ = tile;
        ++running_;
        const std::uint32_t block = order_ == TileOrder::by_columns ? tile.minor : tile.major;
        card_.blocks.submit({&work, &plan_.rates, this, block, kernel_}, Priority::normal);
    }
}

/// How many row blocks divide the weights of the tile's column.
std::uint32_t RowGemm::sharing(const Tile& tile) {
    if (order_ != TileOrder::by_columns) {
        const auto at_once = static_cast<std::uint32_t>(sms_) / columns_;
        const auto together = order_ == TileOrder::by_rows_that_come
                                  ? underway_
                                  : static_cast<std::uint32_t>(left_.size());
        return std::clamp(at_once, 1u, std::max(1u, together));
    }
    if (tile.major != last_.major || running_ == 0) {
        const auto end = ready_.lower_bound({tile.major + 1, 0});
        sharing_ = static_cast<std::uint32_t>(std::distance(ready_.find(tile), end));
    }
    return sharing_;
}

const TileWork& RowGemm::work_when(std::uint32_t blocks_share) {
    if (keeps_weights_) return plan_.runs.front().work;
    const auto [found, made] = works_.try_emplace(blocks_share, plan_.runs.front().work);
    if (made) found->second.hbm_bytes = plan_.row_bytes + plan_.weight_bytes / blocks_share;
    return found->second;
}

void RowGemm::start_all(std::int64_t rows) {
    start(0, blocks_of(rows));
}

Process RowGemm::run(std::int64_t rows) {
    if (rows == 0) co_return;
    co_await run_for(card_, plan_.start, kernel_);
    start_all(rows);
    co_await finish(rows);
}

/// Parts of a split sum are final when the kernel that adds them has run, at the very end.
void RowGemm::block_done(std::uint32_t row_block) {
    --running_;
    if (KernelLog* log = card_.blocks.kernel_log()) log->ran_until(launch_, card_.endpoint.now());
    submit_next();
    if (--left_[row_block] > 0) return;
    --underway_;
    card_.endpoint.increase(ended_);
    if (done_ && plan_.split == 1) done_(row_block);
}

Process RowGemm::finish(std::int64_t rows) {
    const std::uint32_t blocks = blocks_of(rows);
    co_await card_.endpoint.until(ended_, blocks);
    co_await run_for(card_, plan_.finish, kernel_);
    if (!done_ || plan_.split == 1) co_return;
    for (std::uint32_t block = 0; block < blocks; ++block) done_(block);
}

}  // namespace moehub::sim
