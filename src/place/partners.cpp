#include "place/partners.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace moehub {
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
    std::vector<double> values;
    const auto at_price = [&](double price) {
        values.clear();
        for (std::size_t at = 0; at < gains.size(); ++at)
            values.push_back(gains[at] - price * loads[at]);
        return price * limits.budget + largest_sum(values, limits.count);
    };
    const double free = std::isfinite(limits.budget) ? at_price(0) : 0;
    if (!std::isfinite(limits.budget)) {
        values.assign(gains.begin(), gains.end());
        return largest_sum(values, limits.count);
    }
    // Convex in the price: thirds close in on its least value.
    const double load = std::accumulate(loads.begin(), loads.end(), 0.0);
    const double gain = *std::max_element(gains.begin(), gains.end());
    if (load <= 0 || gain <= 0) return free;
    double low = 0;
    double high = 2 * gain * static_cast<double>(loads.size()) / load;
    double least = free;
    constexpr int kSteps = 12;
    for (int step = 0; step < kSteps; ++step) {
        const double left = low + (high - low) / 3;
        const double right = high - (high - low) / 3;
        const double of_left = at_price(left);
        const double of_right = at_price(right);
        least = std::min({least, of_left, of_right});
        (of_left < of_right ? high : low) = of_left < of_right ? right : left;
    }
    return least;
}

}  // namespace moehub
