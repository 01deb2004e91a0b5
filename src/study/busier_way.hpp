/// How far links were used by what has two directions and needs one at a time.
#pragma once
#include <moehub/layer.hpp>

#include <vector>

namespace moehub {

/// How long the wires of one GPU were at work, the busiest's: at any time those of the direction
/// that carried more count. No execution of the same steps, one after the other, takes less.
Ps busier_way(const std::vector<LinkUse>& links);

}  // namespace moehub
