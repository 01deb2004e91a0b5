/// The stages of the joint search.
#pragma once
#include "place/search/ground.hpp"

namespace moehub {

/// The GPU of every item: [layer][item].
using Homes = std::vector<std::vector<int>>;

/// The best places found within the budget, from the ground's first ones.
Homes search_places(const Ground& ground, const PlaceInput& input, const PlaceOptions& options,
                    const Budget& budget);

}  // namespace moehub
