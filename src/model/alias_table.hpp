/// Draws an index with probability proportional to its weight in constant time (Walker's alias
/// method, built as by Vose): as many equal boxes as indices, each shared by two at most.
#pragma once
#include "base/rng.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace moehub {

class AliasTable {
  public:
    /// No weight negative, at most 2^32 of them. With a sum of 0 there is nothing to draw.
    explicit AliasTable(std::span<const double> weights);

    double total() const { return total_; }  ///< of the weights

    /// Needs total() > 0. Never an index of weight 0.
    std::size_t draw(Rng& rng) const {
        // uniform() is below 1 by 2^-53 or more, so the product rounds to below the size.
        const double position = rng.uniform() * static_cast<double>(boxes_.size());
        const auto index = static_cast<std::size_t>(position);
        const Box& box = boxes_[index];
        return position - static_cast<double>(index) < box.own ? index : box.other;
    }

  private:
    struct Box {
        double own;           ///< part of the box that is its own index's
        std::uint32_t other;  ///< whose the rest is
    };
    std::vector<Box> boxes_;
    double total_ = 0;
};

}  // namespace moehub
