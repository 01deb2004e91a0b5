/// Which systems are compared, and why others are not.
#pragma once
#include "answers/layer_request.hpp"

#include <optional>
#include <vector>

namespace moehub {

struct ChosenSystems {
    std::vector<SystemSpec> systems;
    std::vector<LeftOut> left_out;
};

/// Those that are wanted and can run the layer; none wanted: all that can, but for the proposals'
/// ablations, what later versions replaced, and those that compute in FP8, which the others do not.
/// Throws InputError for names that there are not, and where none of those wanted can run it.
ChosenSystems choose_systems(const LayerCase& layer,
                             const std::optional<std::vector<Wanted<SystemSpec>>>& wanted,
                             const Settings& settings);
/// The same of tensor-parallel sub-layers.
ChosenSystems choose_systems(const TpCase& layer,
                             const std::optional<std::vector<Wanted<SystemSpec>>>& wanted,
                             const Settings& settings);

}  // namespace moehub
