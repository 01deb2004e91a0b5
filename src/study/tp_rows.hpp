/// Results of tensor-parallel sub-layers as a comparison.
#pragma once
#include <moehub/tp_compare.hpp>

namespace moehub {

/// The results are of the systems, in their order; both hold at least one.
Comparison tp_rows(const std::vector<SystemSpec>& systems, const std::vector<LayerResult>& results);

}  // namespace moehub
