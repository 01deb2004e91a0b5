/// What a group of GPUs sees of its machine.
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

}  // namespace moehub
