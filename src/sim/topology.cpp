#include "sim/topology.hpp"

#include <algorithm>

namespace moehub::sim {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

}  // namespace

Topology::Topology(const Machine& machine, bool fold_planes)
    : gpus(static_cast<std::uint32_t>(machine.gpus())),
      nodes(static_cast<std::uint32_t>(machine.nodes)),
      gpus_per_node(static_cast<std::uint32_t>(machine.gpus_per_node)),
      mesh(machine.topology == NodeTopology::mesh),
      nics(machine.nodes > 1) {
    if (mesh) {
        planes = gpus_per_node > 1 ? gpus_per_node - 1 : 1;
    } else {
        planes = fold_planes ? 1 : static_cast<std::uint32_t>(machine.switches);
    }
    // A leaf has one uplink of a NIC's rate per node, so it reaches no more spines than that.
    if (nics && gpus_per_node > 1) {
        spines = static_cast<std::uint32_t>(std::min(machine.spines, machine.nodes));
    }
    first_leaf_ = mesh ? 0 : nodes * planes;
    first_spine_ = first_leaf_ + (nics ? gpus_per_node : 0);
}

std::uint32_t Topology::ports(SwitchId number) const {
    return tier(number) == Tier::leaf ? nodes + spines : gpus_per_node;
}

ComponentId Topology::behind_port(SwitchId number, std::uint32_t port) const {
    switch (tier(number)) {
        case Tier::node:
            return gpu(number / planes * gpus_per_node + port);
        case Tier::leaf:
            return port < nodes ? gpu(port * gpus_per_node + number - first_leaf_)
                                : of_switch(spine(port - nodes));
        case Tier::spine:
            break;
    }
    return of_switch(leaf(port));
}

std::uint32_t Topology::port_towards(SwitchId number, const Train& train) const {
    if (tier(number) != Tier::leaf) return rail(train.dst);
    return rail(train.dst) == number - first_leaf_ ? node(train.dst) : nodes + spine_of(train);
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
    return static_cast<std::uint32_t>(((mix(group) >> 32) * planes) >> 32);
}

ComponentId Topology::after_nic(const Train& train) const {
    return of_switch(leaf(spines == 0 ? rail(train.dst) : rail(train.src)));
}

}  // namespace moehub::sim
