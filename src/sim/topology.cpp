#include "sim/topology.hpp"

#include "base/rng.hpp"

#include <algorithm>

namespace moehub::sim {
Topology::Topology(const Machine& machine, bool fold_planes)
    : gpus(static_cast<std::uint32_t>(machine.gpus())),
      nodes(static_cast<std::uint32_t>(machine.nodes)),
      gpus_per_node(static_cast<std::uint32_t>(machine.gpus_per_node)),
      mesh(machine.topology == NodeTopology::mesh),
      nics(machine.nodes > 1) {
    if (mesh)
        planes = gpus_per_node > 1 ? gpus_per_node - 1 : 1;
    else
        planes = fold_planes ? 1 : static_cast<std::uint32_t>(machine.switches);
    leaf_nodes = nodes;
    if (nics && machine.spines > 0) join_leaves(machine);
    first_leaf_ = mesh ? 0 : nodes * planes;
    first_spine_ = first_leaf_ + (nics ? leaves() : 0);
}

/// A leaf reaches no more spines than it has uplinks.
void Topology::join_leaves(const Machine& machine) {
    if (machine.leaf_nodes > 0)
        leaf_nodes = std::min(nodes, static_cast<std::uint32_t>(machine.leaf_nodes));
    if (leaves() == 1) return;
    uplinks_of_leaf =
        machine.leaf_uplinks > 0 ? static_cast<std::uint32_t>(machine.leaf_uplinks) : leaf_nodes;
    const std::uint64_t wanted =
        std::uint64_t{units()} * static_cast<std::uint64_t>(machine.spines);
    spines = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, uplinks_of_leaf));
    adaptive = machine.adaptive_routing;
}

std::uint32_t Topology::ports(SwitchId number) const {
    if (tier(number) == Tier::node) return gpus_per_node;
    return tier(number) == Tier::leaf ? leaf_nodes + spines : leaves();
}

ComponentId Topology::behind_port(SwitchId number, std::uint32_t port) const {
    if (tier(number) == Tier::node) return gpu(number / planes * gpus_per_node + port);
    if (tier(number) == Tier::leaf) return behind_leaf(number - first_leaf_, port);
    return of_switch(first_leaf_ + port);
}

/// The last leaves of a rail may have ports without a node; they lead nowhere, that is to the last.
ComponentId Topology::behind_leaf(std::uint32_t index, std::uint32_t port) const {
    if (port >= leaf_nodes) return of_switch(spine(port - leaf_nodes));
    const std::uint32_t at = std::min(index / gpus_per_node * leaf_nodes + port, nodes - 1);
    return gpu(at * gpus_per_node + index % gpus_per_node);
}

std::uint32_t Topology::port_towards(SwitchId number, const Train& train) const {
    if (tier(number) == Tier::node) return rail(train.dst);
    if (tier(number) == Tier::spine) return leaf(train.dst) - first_leaf_;
    return leaf(train.dst) == number ? node(train.dst) % leaf_nodes : leaf_nodes + spine_of(train);
}

std::uint32_t Topology::uplink(std::uint32_t src, std::uint32_t dst, std::uint64_t line) const {
    if (!same_node(src, dst)) return planes;
    if (mesh) return rail(dst) - (rail(dst) > rail(src) ? 1 : 0);
    if (planes == 1) return 0;
    const std::uint64_t group = line / planes;
    const auto position = static_cast<std::uint32_t>(line % planes);
    return (position + first_of_group(group)) % planes;
}

std::uint64_t Topology::line(std::uint64_t group, std::uint32_t uplink_number) const {
    const std::uint32_t first = first_of_group(group);
    const std::uint32_t position = uplink_number - first + (uplink_number < first ? planes : 0);
    return group * planes + position;
}

std::uint32_t Topology::first_of_group(std::uint64_t group) const {
    // The high half of a product stands for a remainder, without a division.
    return static_cast<std::uint32_t>(((mixed_bits(group) >> 32) * planes) >> 32);
}

ComponentId Topology::after_nic(const Train& train) const {
    return of_switch(leaf(spines == 0 ? train.dst : train.src));
}

}  // namespace moehub::sim
