/// Which experts the tokens of a layer choose: generated, or recorded.
#pragma once
#include "request/layer_arguments.hpp"

#include <moehub/expert_layout.hpp>

namespace moehub {

/// Routing, layer and, where there is a layout, placement of `made`, whose machine, model and
/// options are there already; a routing or layout that is given comes before one that is named.
/// Throws InputError.
void load_routing(const LayerArguments& arguments, const std::optional<ExpertLayout>& layout,
                  LayoutLayer usual, const LayerNouns& given, LayerCase& made);

}  // namespace moehub
