#include "model/urn.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace moehub {
namespace {

std::vector<std::size_t> infinite_ones(const std::vector<double>& weights) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < weights.size(); ++i)
        if (std::isinf(weights[i])) found.push_back(i);
    return found;
}

std::vector<double> finite_ones(std::vector<double> weights) {
    for (auto& weight : weights)
        if (std::isinf(weight)) weight = 0;
    return weights;
}

}  // namespace

Urn::Urn(std::vector<double> weights)
    : certain_(infinite_ones(weights)),
      weights_(finite_ones(std::move(weights))),
      table_(weights_),
      out_(weights_.size(), 0) {}

std::size_t Urn::next_certain(Rng& rng) {
    const std::size_t more = certain_.size() - next_certain_;
    if (more > 1)
        std::swap(certain_[next_certain_],
                  certain_[next_certain_ + static_cast<std::size_t>(rng.below(more))]);
    return certain_[next_certain_++];
}

double Urn::weight_left() const {
    double sum = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i)
        if (out_[i] != round_) sum += weights_[i];
    return sum;
}

std::size_t Urn::draw_left(Rng& rng) {
    const double weight = weight_left();
    const bool by_weight = weight > 0;
    double passes = by_weight ? rng.uniform() * weight : static_cast<double>(rng.below(left_));
    std::size_t hit = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        const double step = by_weight ? weights_[i] : 1.0;
        if (out_[i] == round_ || step <= 0) continue;
        hit = i;  // the last one stays, should rounding carry `passes` beyond all
        if (passes < step) break;
        passes -= step;
    }
    take(hit);
    return hit;
}

std::size_t Urn::draw(Rng& rng) {
    if (const auto index = draw_certain(rng)) return *index;
    if (total() > 0)
        for (int i = 0; i < kTries; ++i)
            if (const auto hit = try_draw(rng)) return *hit;
    return draw_left(rng);
}

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
