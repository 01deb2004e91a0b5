#include "sim/layout.hpp"

#include <algorithm>

namespace moehub::sim {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

}  // namespace

Layout::Layout(const Machine& machine, bool fold_planes)
    : gpus(static_cast<std::uint32_t>(machine.gpus())),
      gpus_per_node(static_cast<std::uint32_t>(machine.gpus_per_node)),
      mesh(machine.topology == Topology::mesh),
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
    first_leaf_up_ = down_ports() + nic_ports();
}

std::uint32_t Layout::uplink(std::uint32_t src, std::uint32_t dst, std::uint64_t line) const {
    if (!same_node(src, dst)) return planes;
    if (mesh) return rail(dst) - (rail(dst) > rail(src) ? 1 : 0);
    if (planes == 1) return 0;
    const std::uint64_t group = line / planes;
    const auto place = static_cast<std::uint32_t>(line % planes);
    return (place + first_of_group(group)) % planes;
}

std::uint64_t Layout::line(std::uint64_t group, std::uint32_t uplink_number) const {
    const std::uint32_t first = first_of_group(group);
    const std::uint32_t place = uplink_number - first + (uplink_number < first ? planes : 0);
    return group * planes + place;
}

std::uint32_t Layout::first_of_group(std::uint64_t group) const {
    // The high half of a product stands for a remainder, without a division.
    return static_cast<std::uint32_t>(((mix(group) >> 32) * planes) >> 32);
}

ComponentId Layout::after_nic(const Unit& unit) const {
    if (rail(unit.src) == rail(unit.dst) || spines == 0) return port(nic_down(unit.dst));
    return port(leaf_up(rail(unit.src), spine_of(unit)));
}

ComponentId Layout::after_spine_link(std::uint32_t number, const Unit& unit) const {
    if (number < spine_ports()) return port(spine_down(spine_of(unit), rail(unit.dst)));
    return port(nic_down(unit.dst));
}

}  // namespace moehub::sim
