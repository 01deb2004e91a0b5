/// What a layer and a system must agree on.
#pragma once
#include <moehub/layer.hpp>

namespace moehub::systems {

/// As check_layer(), of a machine whose values were looked at one by one when it was loaded, which
/// takes longer than all the rest.
void check_loaded(const LayerInput& input, const SystemSpec& system, const LayerOptions& options);

}  // namespace moehub::systems
