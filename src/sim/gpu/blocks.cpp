#include "sim/gpu/blocks.hpp"

#include "sim/gpu/execute.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {
namespace {

Ps to_ps(double seconds) {
    return std::llround(seconds * 1e12);
}

}  // namespace

BlockScheduler::BlockScheduler(Card& card) : card_(card), free_(card.gpu.sms) {}

void BlockScheduler::submit(const Block& block, Priority priority) {
    waiting_[static_cast<std::size_t>(priority)].push_back(block);
    assign();
}

void BlockScheduler::hold(int sms, KernelName kernel) {
    count_held();
    if (log_ != nullptr) log_->hold(kernel, sms, free_, card_.endpoint.now());
    held_ += sms;
    free_ -= sms;
}

void BlockScheduler::release(int sms, KernelName kernel) {
    count_held();
    if (log_ != nullptr) log_->release(kernel, sms, card_.endpoint.now());
    held_ -= sms;
    free_ += sms;
    assign();
}

void BlockScheduler::count_held() {
    const Ps now = card_.endpoint.now();
    const int had = held_ - std::max(0, -free_);
    held_time_ += static_cast<double>(had) * static_cast<double>(now - counted_);
    counted_ = now;
}

/// Gives free SMs to the most urgent block; one that needs more SMs than are free is waited for.
void BlockScheduler::assign() {
    for (auto& queue : waiting_) {
        for (; !queue.empty(); queue.pop_front()) {
            const int sms = queue.front().work->sms;
            if (sms > free_) return;
            if (log_ != nullptr) log_->take(queue.front().kernel, sms, card_.endpoint.now());
            if (idle_.empty()) {
                const auto number = static_cast<std::uint32_t>(workers_.size());
                workers_.push_back({queue.front(), nullptr});
                processes_.push_back(work(number));
                card_.endpoint.resume(processes_.back().handle());
            } else {
                Worker& worker = workers_[idle_.back()];
                idle_.pop_back();
                worker.block = queue.front();
                card_.endpoint.resume(worker.idle);
            }
            free_ -= sms;
        }
    }
}

void BlockScheduler::NextBlock::await_suspend(std::coroutine_handle<> caller) {
    scheduler.workers_[worker].idle = caller;
    scheduler.idle_.push_back(worker);
    scheduler.assign();
}

Process BlockScheduler::work(std::uint32_t worker) {
    for (;;) {
        const TileWork& work = *workers_[worker].block.work;
        const TileRates& rates = *workers_[worker].block.rates;
        const Ps begin = card_.endpoint.now();
        card_.activity.compute(1, begin);
        // Data from HBM is drawn at the rate the kernel reaches, which is below the card's.
        const double reach = card_.gpu.kernels.hbm_efficiency * card_.gpu.hbm_bandwidth;
        Draw draw{card_.tensor, work.flops, &card_.hbm, work.hbm_bytes * reach / rates.hbm,
                  work.sms};
        co_await draw;
        // Loads ran beside the multiplications; what is finished is stored after them.
        Ps rest = 0;
        if (work.load_bytes > 0) {
            const Ps loaded = begin + to_ps(work.load_bytes / rates.load);
            rest = std::max<Ps>(0, loaded - card_.endpoint.now());
        }
        if (work.store_bytes > 0) rest += to_ps(work.store_bytes / rates.store);
        co_await card_.endpoint.delay(rest);
        finish(worker, begin);
        NextBlock next{*this, worker};
        co_await next;
    }
}

void BlockScheduler::finish(std::uint32_t worker, Ps begin) {
    const Block block = workers_[worker].block;
    const Ps now = card_.endpoint.now();
    card_.activity.compute(-1, now);
    sm_time_ += static_cast<double>(block.work->sms) * static_cast<double>(now - begin);
    if (free_ < 0) count_held();
    if (log_ != nullptr) log_->give(block.kernel, block.work->sms, now);
    free_ += block.work->sms;
    block.owner->block_done(block.number);
}

}  // namespace moehub::sim
