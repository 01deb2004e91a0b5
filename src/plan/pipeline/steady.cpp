// x(k) repeats x(k - lag) when x(k) - x(k - lag) is the same in all components; then
// x(k + n·lag) = x(k) + n·(x(k) - x(k - lag)).
#include "plan/pipeline/steady.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

/// Of a time: sums of the same terms in another order differ by less.
constexpr double kRounding = 1e-13;

}  // namespace

SteadyState::SteadyState(std::size_t size, std::size_t limit, std::size_t lags)
    : size_(size), limit_(limit), lags_(lags) {
    states_.reserve(4 * size);
}

bool SteadyState::add(std::span<const double> state) {
    states_.insert(states_.end(), state.begin(), state.end());
    ++rounds_;
    const std::size_t most = std::min(lags_, rounds_ - 1);
    for (std::size_t lag = 1; lag <= most; ++lag)
        if (repeats(lag)) return true;
    return false;
}

bool SteadyState::repeats(std::size_t lag) {
    const double* last = states_.data() + (rounds_ - 1) * size_;
    const double* before = last - lag * size_;
    const double shift = last[0] - before[0];
    const double tolerance = kRounding * last[0];
    for (std::size_t i = 1; i < size_; ++i)
        if (std::abs(last[i] - before[i] - shift) > tolerance) return false;
    lag_ = lag;
    return true;
}

void SteadyState::skip(std::span<double> state, double rounds) const {
    const std::size_t lag = lag_ > 0 ? lag_ : std::max<std::size_t>(rounds_ / 2, 1);
    const double* last = states_.data() + (rounds_ - 1) * size_;
    const double* before = last - lag * size_;
    const double turns = rounds / static_cast<double>(lag);
    const double common = last[0] - before[0];
    for (std::size_t i = 0; i < size_; ++i)
        state[i] += turns * (lag_ > 0 ? common : last[i] - before[i]);
}

}  // namespace moehub
