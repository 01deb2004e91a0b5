#include "study/sweep/rank_workers.hpp"

#include <algorithm>

namespace moehub {

RankWorkers::RankWorkers(const Study& study, const SimulatePoint& simulate, int threads)
    : study_(study), simulate_(simulate) {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    const unsigned count = threads > 0 ? static_cast<unsigned>(threads) : cores;
    for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
}

RankWorkers::~RankWorkers() {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    added_.notify_all();
}

void RankWorkers::add(std::size_t point) {
    const std::lock_guard lock(mutex_);
    points_.push_back(point);
    ++underway_;
    added_.notify_one();
}

std::size_t RankWorkers::underway() const {
    const std::lock_guard lock(mutex_);
    return underway_;
}

std::optional<SweepMessage> RankWorkers::next(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    done_.wait_for(lock, limit, [this] { return !messages_.empty(); });
    if (messages_.empty()) return std::nullopt;
    SweepMessage message = std::move(messages_.front());
    messages_.pop_front();
    --underway_;
    return message;
}

void RankWorkers::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        added_.wait(lock, [this] { return ending_ || !points_.empty(); });
        if (ending_) return;
        SweepMessage message{SweepMessage::Kind::result, points_.front()};
        points_.pop_front();
        lock.unlock();
        try {
            message.outcome = simulate_(point_of(study_, message.number));
        } catch (const std::exception& error) {
            message.kind = SweepMessage::Kind::failure;
            message.text = error.what();
        }
        lock.lock();
        messages_.push_back(std::move(message));
        done_.notify_one();
    }
}

}  // namespace moehub
