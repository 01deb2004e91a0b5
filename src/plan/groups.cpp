#include "plan/groups.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {

GroupShape shape_of(const Machine& machine, GpuGroup group) {
    if (group.size < 1 || group.stride < 1)
        throw InputError(fmt::format("a group of {} GPUs, every {}-th: allowed 1 and more",
                                     group.size, group.stride));
    int per_node = std::clamp(machine.gpus_per_node / group.stride, 1, group.size);
    while (group.size % per_node != 0) --per_node;
    return {per_node, group.size / per_node};
}

Machine machine_of(const Machine& machine, GroupShape shape) {
    Machine part = machine;
    part.gpus_per_node = shape.per_node;
    part.nodes = shape.nodes;
    part.max_gpus = 0;
    part.nccl.net_rings = std::min(machine.nccl.net_rings, shape.per_node);
    // Other groups' packets are elsewhere: a leaf's uplinks are those of all its nodes.
    if (part.leaf_uplinks == 0)
        part.leaf_uplinks = machine.leaf_nodes > 0 ? machine.leaf_nodes : machine.nodes;
    const bool mesh = machine.topology == NodeTopology::mesh;
    if (mesh && shape.per_node > 1)
        part.link.bandwidth *= static_cast<double>(shape.per_node - 1) /
                               static_cast<double>(machine.gpus_per_node - 1);
    return part;
}

}  // namespace moehub
