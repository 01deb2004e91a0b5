#include "sim/switch/fluid.hpp"

#include <algorithm>

namespace moehub::sim {

void FluidLink::advance(Ps now) {
    double left = static_cast<double>(now - last_);
    last_ = now;
    while (left > 0) left -= step(left);
}

/// Moves on until `left` has passed or a backlog has ended; returns the time that took.
double FluidLink::step(double left) {
    const bool busy[2] = {backlog_[0] > 0 || rate_[0] > share(0),
                          backlog_[1] > 0 || rate_[1] > share(1)};
    if (!busy[0] && !busy[1]) return left;
    double gain[2];  // of each backlog, per time
    for (const std::size_t i : {0u, 1u}) {
        const double served = busy[0] && busy[1] ? share(i) : busy[i] ? 1 - rate_[1 - i] : rate_[i];
        gain[i] = rate_[i] - served;
    }
    double time = left;
    for (const std::size_t i : {0u, 1u}) {
        if (backlog_[i] > 0 && gain[i] < 0) time = std::min(time, backlog_[i] / -gain[i]);
    }
    for (const std::size_t i : {0u, 1u}) {
        const double after = backlog_[i] + gain[i] * time;
        backlog_[i] = after > 1e-6 ? after : 0;  // what is left then is rounding
    }
    return time;
}

void FluidLink::add(std::size_t kind, double work, double rate) {
    backlog_[kind] = std::max(0.0, backlog_[kind] + work);
    rate_[kind] = std::max(0.0, rate_[kind] + rate);
}

double FluidLink::wait(std::size_t kind) const {
    return std::min(backlog_[kind] / share(kind), backlog_[0] + backlog_[1]);
}

}  // namespace moehub::sim
