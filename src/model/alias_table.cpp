#include "model/alias_table.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {

AliasTable::AliasTable(std::span<const double> weights)
    : boxes_(weights.size()), total_(std::accumulate(weights.begin(), weights.end(), 0.0)) {
    if (!(total_ > 0)) return;
    const auto heaviest = static_cast<std::uint32_t>(
        std::max_element(weights.begin(), weights.end()) - weights.begin());
    const double boxes = static_cast<double>(weights.size());
    std::vector<double> height(weights.size());  // in boxes, still to be boxed
    std::vector<std::uint32_t> low, high;
    for (std::uint32_t i = 0; i < weights.size(); ++i) {
        height[i] = weights[i] / total_ * boxes;
        (height[i] < 1 ? low : high).push_back(i);
    }
    while (!low.empty() && !high.empty()) {
        const std::uint32_t i = low.back(), donor = high.back();
        low.pop_back();
        boxes_[i] = {height[i], donor};
        height[donor] = (height[donor] + height[i]) - 1;
        if (height[donor] >= 1) continue;
        high.pop_back();
        low.push_back(donor);
    }
    for (const auto i : high) boxes_[i] = {1, i};
    // Left over by rounding: full boxes in truth. One of weight 0 must not be drawn all the same.
    for (const auto i : low)
        boxes_[i] = {weights[i] > 0 ? 1.0 : 0.0, weights[i] > 0 ? i : heaviest};
}

}  // namespace moehub
