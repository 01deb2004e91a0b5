/// Relabels the GPUs of each layer so that tokens stay on a GPU from layer to layer.
#pragma once
#include "place/counts.hpp"

#include <moehub/expert_layout.hpp>

#include <vector>

namespace moehub {

/// `transitions[l]` is between layers l and l + 1, [expert × expert]. Layer 0 keeps its labels.
/// Which experts share a GPU does not change; without copies no other relabelling keeps more
/// transitions on their GPU. An expert with copies counts in equal parts on its GPUs. Nodes are not
/// looked at: over several nodes a GPU's experts may go to another node.
void align(ExpertLayout& layout, const std::vector<Matrix>& transitions);

}  // namespace moehub
