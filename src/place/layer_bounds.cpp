#include "place/layer_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace moehub {

// The GPU with the heaviest expert holds as many others as it has slots, at least the lightest
// ones; of the j·G + 1 heaviest experts some GPU of G holds j + 1, at least the lightest of them.
double load_bound(std::span<const double> rows_of_expert, int gpus, SlotCounts slots) {
    std::vector<double> ascending(rows_of_expert.begin(), rows_of_expert.end());
    std::sort(ascending.begin(), ascending.end());
    const auto sum_of = [&ascending](std::size_t first, std::size_t count) {
        const auto begin = ascending.begin() + static_cast<std::ptrdiff_t>(first);
        return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), 0.0);
    };
    const std::size_t experts = ascending.size();
    const double total = sum_of(0, experts);
    if (!(total > 0)) return 0;
    const auto parts = static_cast<std::size_t>(gpus);
    const std::size_t least =
        slots == SlotCounts::equal ? std::max<std::size_t>(experts / parts, 1) : 1;
    double bound = ascending.back() + sum_of(0, least - 1);
    for (std::size_t j = 1; j * parts + 1 <= experts; ++j)
        bound = std::max(bound, sum_of(experts - (j * parts + 1), j + 1));
    return std::max(1.0, bound * gpus / total);
}

namespace {

double largest_sum(std::vector<double>& values, int count) {
    const auto size =
        std::min(static_cast<std::ptrdiff_t>(count), static_cast<std::ptrdiff_t>(values.size()));
    if (size <= 0) return 0;
    std::nth_element(values.begin(), values.begin() + (size - 1), values.end(), std::greater<>());
    return std::accumulate(values.begin(), values.begin() + size, 0.0);
}

}  // namespace

double most_gain(std::span<const double> gains, std::span<const double> loads,
                 const PartnerLimits& limits) {
    std::vector<double> values(gains.begin(), gains.end());
    const double free = largest_sum(values, limits.count);
    const double load = std::accumulate(loads.begin(), loads.end(), 0.0);
    if (!std::isfinite(limits.budget) || load <= 0 || free <= 0) return free;
    const auto at_price = [&](double price) {
        for (std::size_t at = 0; at < gains.size(); ++at)
            values[at] = gains[at] - price * loads[at];
        return price * limits.budget + largest_sum(values, limits.count);
    };
    // Convex in the price, and rarely least above twice the mean gain per load of the best: the
    // golden section closes in on it, one price a step.
    constexpr double kGolden = 0.6180339887498949;
    constexpr int kSteps = 9;
    double low = 0;
    double high = 2 * free / std::max(limits.count, 1) * static_cast<double>(loads.size()) / load;
    double left = high - kGolden * (high - low);
    double right = low + kGolden * (high - low);
    double of_left = at_price(left);
    double of_right = at_price(right);
    double least = std::min({free, of_left, of_right});
    for (int step = 0; step < kSteps; ++step) {
        if (of_left < of_right) {
            high = right;
            right = std::exchange(left, right - kGolden * (right - low));
            of_right = std::exchange(of_left, at_price(left));
        } else {
            low = left;
            left = std::exchange(right, left + kGolden * (high - left));
            of_left = std::exchange(of_right, at_price(right));
        }
        least = std::min({least, of_left, of_right});
    }
    return least;
}

}  // namespace moehub
