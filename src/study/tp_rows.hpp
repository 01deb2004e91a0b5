/// Results of tensor-parallel sub-layers as a comparison.
#pragma once
#include <moehub/tp_compare.hpp>

#include <string_view>

namespace moehub {

/// The results are of the systems, in their order; both hold at least one. `baseline` is one of
/// them; empty: as compare_tp() says.
Comparison tp_rows(const std::vector<SystemSpec>& systems, const std::vector<LayerResult>& results,
                   std::string_view baseline = {});

}  // namespace moehub
