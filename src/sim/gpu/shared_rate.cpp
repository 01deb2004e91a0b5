#include "sim/gpu/shared_rate.hpp"

#include <algorithm>
#include <cmath>

namespace moehub::sim {

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
