/// The assignment problem: rows to columns, one to one, for the largest total gain; and new labels
/// for GPUs by it.
#pragma once
#include "place/counts.hpp"

#include <moehub/expert_layout.hpp>

#include <vector>

namespace moehub {

/// The column of every row, no column twice, such that the sum of gain(row, column) is the
/// largest. At most as many rows as columns; gains finite. O(rows² · columns); ties always resolve
/// the same way.
std::vector<int> best_assignment(const Matrix& gain);

/// New labels for GPUs: which of the layer's GPUs takes the place of which, for the largest gain,
/// where the GPUs of a node stay together.
/// `gain(g, h)`: gain of what is on GPU g going to h. [old GPU] → new. On one node the Hungarian
/// method; over several the same on two levels, within nodes and then of nodes.
std::vector<int> best_labels(const Matrix& gain, int nodes);

/// Relabels the GPUs of each layer so that tokens stay on a GPU from layer to layer.
/// `transitions[l]` is between layers l and l + 1, [expert × expert]. Layer 0 keeps its labels.
/// Which experts share a GPU does not change; without copies no other relabelling keeps more
/// transitions on their GPU. An expert with copies counts in equal parts on its GPUs. Nodes are not
/// looked at: over several nodes a GPU's experts may go to another node.
void align(ExpertLayout& layout, const std::vector<Matrix>& transitions);

}  // namespace moehub
