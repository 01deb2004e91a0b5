/// What a group of GPUs sees of its machine, and collectives over it, simulated; of very large
/// groups from smaller ones alike.
#pragma once
#include "plan/communication.hpp"

namespace moehub {

/// Members of a node, and nodes.
struct GroupShape {
    int per_node = 1;
    int nodes = 1;

    int gpus() const { return per_node * nodes; }
    friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

/// As many members of a node as its GPUs and the stride leave, and as divide the group: nodes are
/// alike.
GroupShape shape_of(const Machine& machine, GpuGroup group);

/// The machine of the group alone. Every GPU keeps its links to switches and its NIC; of a mesh the
/// links to GPUs of other groups are gone. That members lie several nodes apart is left out: spines
/// then add half a microsecond, and have a NIC's rate for every NIC.
Machine machine_of(const Machine& machine, GroupShape shape);

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
