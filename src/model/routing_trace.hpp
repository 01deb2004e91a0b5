/// Recorded routing, as an array of expert numbers.
#pragma once
#include "base/npy.hpp"

#include <moehub/routing.hpp>

#include <string>

namespace moehub {

/// read_routing of an array already in memory; `file` is its name in errors.
Routing routing_of(const NpyArray& array, int experts, const std::string& file);

}  // namespace moehub
