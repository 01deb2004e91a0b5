/// Collectives over a group of GPUs, simulated; of very large groups from smaller ones alike.
#pragma once
#include "plan/groups.hpp"

namespace moehub {

/// Seconds, of bytes as nccl-tests counts them; 0 for a group of one. `machine` is the whole one.
///
/// NCCL's choice: rings, in-switch sums, NVLS trees; no SHARP. Rings between nodes of up to 32 GPUs
/// by Simple where that is faster than LL128. On a mesh what HCCL does: everyone to everyone inside
/// a node, then rings of a NIC each between nodes, each with its share.
///
/// Simulated as a whole are rings of some 32 GPUs, or of 8 nodes with one member each, and
/// exchanges and trees of 4 nodes or so. Beyond, steps that are all alike are counted on: see the
/// source.
double group_seconds(const Machine& machine, Collective::Op op, GroupShape shape, double bytes);

/// From which size on time grows in proportion: parts are so large that a link or NIC is what
/// takes long.
double linear_from(GroupShape shape);

}  // namespace moehub
