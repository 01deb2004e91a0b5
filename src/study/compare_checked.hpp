/// Comparing systems that are known to run the layer (check_layer).
#pragma once
#include <moehub/compare.hpp>

namespace moehub {

/// As compare_systems(), which checks them first.
Comparison compare_checked(const LayerInput& input, const std::vector<SystemSpec>& systems,
                           const CompareOptions& options);

}  // namespace moehub
