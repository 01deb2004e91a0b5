#include "sim/gpu/card.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {

BlockScheduler::BlockScheduler(Card& card) : card_(card), free_(card.gpu.sms) {}

void BlockScheduler::submit(const Block& block, Priority priority) {
    waiting_[static_cast<std::size_t>(priority)].push_back(block);
    assign();
}

void BlockScheduler::hold(int sms, KernelName kernel) {
    if (log_ != nullptr) log_->hold(kernel, sms, free_, card_.endpoint.now());
    free_ -= sms;
}

void BlockScheduler::release(int sms, KernelName kernel) {
    if (log_ != nullptr) log_->release(kernel, sms, card_.endpoint.now());
    free_ += sms;
    assign();
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
    if (log_ != nullptr) log_->give(block.kernel, block.work->sms, now);
    free_ += block.work->sms;
    block.owner->block_done(block.number);
}

namespace {

/// Counts a kernel's finished blocks.
struct Finished final : BlockOwner {
    Endpoint& gpu;
    CounterId done;
    explicit Finished(Endpoint& endpoint)
        : gpu(endpoint), done(endpoint.add_counter("finished blocks of a kernel")) {}
    ~Finished() { gpu.drop_counter(done); }
    Finished(const Finished&) = delete;
    void block_done(std::uint32_t) override { gpu.increase(done); }
};

/// The card counts as computing while a kernel is launched or ends, and while blocks are on SMs
/// (BlockScheduler), but not while they wait for SMs that others hold.
struct Running {
    Card& card;
    explicit Running(Card& on) : card(on) { card.activity.compute(1, card.endpoint.now()); }
    ~Running() { card.activity.compute(-1, card.endpoint.now()); }
    Running(const Running&) = delete;
};

}  // namespace

Card::Card(Endpoint& endpoint_of_gpu, const Gpu& spec)
    : endpoint(endpoint_of_gpu),
      gpu(spec),
      tensor(endpoint_of_gpu, spec.kernels.tensor_efficiency * spec.bf16_flops,
             spec.bf16_flops / spec.sms),
      hbm(endpoint_of_gpu, spec.kernels.hbm_efficiency * spec.hbm_bandwidth, spec.hbm_bandwidth),
      blocks(*this) {}

Process run_gemm(Card& card, const GemmPlan& plan, KernelName kernel, Priority priority) {
    const Launched launched(card, kernel);
    co_await run_for(card, plan.start, kernel);
    Finished finished(card.endpoint);
    for (const TileRun& run : plan.runs)
        for (std::int64_t i = 0; i < run.count; ++i)
            card.blocks.submit({&run.work, &plan.rates, &finished, 0, kernel}, priority);
    co_await card.endpoint.until(finished.done, plan.tiles());
    co_await run_for(card, plan.finish, kernel);
}

Process run_stream(Card& card, Traffic traffic, KernelName kernel) {
    co_await run_for(card, plan_stream(card.gpu, traffic).start, kernel);
    co_await run_stream_blocks(card, traffic, kernel, Priority::normal);
}

Process run_stream_blocks(Card& card, Traffic traffic, KernelName kernel, Priority priority) {
    const Launched launched(card, kernel);
    const StreamPlan plan = plan_stream(card.gpu, traffic);
    Finished finished(card.endpoint);
    for (int i = 0; i < plan.blocks; ++i)
        card.blocks.submit({&plan.work, &plan.rates, &finished, 0, kernel}, priority);
    co_await card.endpoint.until(finished.done, plan.blocks);
}

Process run_for(Card& card, double seconds, KernelName kernel) {
    const Running running(card);
    const Launched launched(card, kernel);
    co_await card.endpoint.delay(to_ps(seconds));
}

double SharedRate::rate() const {
    return std::min(total_ / static_cast<double>(users_.size()), each_) * 1e-12;
}

void SharedRate::draw(double amount, Waiter& waiter) {
    advance();
    users_.push({progress_ + amount, amount, order_++, &waiter});
    set_alarm();
}

void SharedRate::advance() {
    const Ps now = gpu_->now();
    if (now <= last_) return;
    if (!users_.empty()) progress_ += rate() * static_cast<double>(now - last_);
    last_ = now;
}

/// An alarm that is set rings too early then, and sets the next.
Ps SharedRate::take(double amount) {
    advance();
    behind_ += amount / total_ * 1e12;
    const double whole = std::floor(behind_);
    last_ += static_cast<Ps>(whole);
    behind_ -= whole;
    drawn_ += amount;
    return last_;
}

/// Alarms only move earlier; one that rings before anyone is done sets the next.
void SharedRate::set_alarm() {
    if (users_.empty()) return;
    const double wait = std::max(0.0, users_.front().target - progress_) / rate();
    const Ps due = last_ + static_cast<Ps>(std::ceil(wait));
    if (due >= alarm_) return;
    alarm_ = due;
    gpu_->call_at(due, *this);
}

void SharedRate::ring() {
    if (gpu_->now() >= alarm_) alarm_ = kNever;
    advance();
    // Progress is a sum of rounded steps: less than two picoseconds' worth left is done.
    while (!users_.empty() && users_.front().target - progress_ < 2 * rate()) {
        drawn_ += users_.front().amount;
        Waiter& waiter = *users_.front().waiter;
        users_.pop();
        if (--waiter.draws == 0) gpu_->resume(waiter.waiting);
    }
    set_alarm();
}

}  // namespace moehub::sim
