// The GPU with the heaviest expert holds as many others as it has slots, at least the lightest
// ones; of the j·G + 1 heaviest experts some GPU of G holds j + 1, at least the lightest of them.
#include "place/load_bound.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace moehub {

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

}  // namespace moehub
