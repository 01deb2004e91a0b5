/// `moehub compare` and `moehub run` of tensor-parallel sub-layers.
#pragma once
#include "request/layer_arguments.hpp"

namespace moehub {

/// Without systems: all that can run it but for the ablations.
void compare_tp_command(const LayerArguments& arguments, const std::optional<std::string>& systems,
                        int threads);
/// Without a system: cais.
void run_tp_command(const LayerArguments& arguments, const std::optional<std::string>& system);

}  // namespace moehub
