/// New labels for GPUs: which of the layer's GPUs takes the place of which, for the largest gain,
/// where the GPUs of a node stay together.
#pragma once
#include "place/counts.hpp"

#include <vector>

namespace moehub {

/// `gain(g, h)`: of what is on GPU g going to h. [old GPU] → new. On one node the Hungarian method;
/// over several the same on two levels, within nodes and then of nodes.
std::vector<int> best_labels(const Matrix& gain, int nodes);

}  // namespace moehub
