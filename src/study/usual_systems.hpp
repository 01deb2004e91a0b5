/// The systems that are compared when none are named, and why the others are not.
#pragma once
#include "study/layer_case.hpp"
#include "study/tp_case.hpp"

#include <moehub/compare.hpp>

#include <string>
#include <vector>

namespace moehub {

struct UsualSystems {
    std::vector<std::string> names;
    std::vector<LeftOut> left_out;
};

/// All systems that can run the layer, but for the proposals' ablations, what later versions
/// replaced, and those that compute in FP8, which the others do not.
UsualSystems usual_systems(const LayerCase& layer);

/// All that can run the sub-layers, but for the ablations. Where none can, the first, which says
/// why.
UsualSystems usual_systems(const TpCase& layer);

}  // namespace moehub
