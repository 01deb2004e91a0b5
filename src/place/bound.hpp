/// Lower bounds: no layout with as many slots on every GPU, with the copies of the given layout,
/// and with no layer more loaded than the cap or than in the given layout, is below them.
#pragma once
#include <moehub/place.hpp>

namespace moehub {

/// Of each part of an Evaluation on its own; what has no bound is 0. Weighted means over the
/// profiles. Where GPUs have different numbers of slots, only of the load.
Evaluation lower_bounds(const PlaceInput& input, const PlaceOptions& options,
                        const ExpertLayout& layout);

/// Of a weighted sum: the sum of the parts' bounds.
double bound_of(const Objective& objective, const Evaluation& bounds);

}  // namespace moehub
