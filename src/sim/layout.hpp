/// Where everything is: numbering of components and the way a unit takes through them.
///
/// Inside a node a unit goes egress(src) → port down(dst, plane) → gpu(dst); in a mesh it goes
/// egress(src) → gpu(dst). Between nodes it goes egress(src) → leaf of src's rail → [spine → leaf
/// of dst's rail] → gpu(dst); GPU i of every node is on rail i.
#pragma once
#include "sim/event.hpp"

#include <moehub/machine.hpp>

namespace moehub::sim {

struct Layout {
    std::uint32_t gpus = 0;
    std::uint32_t gpus_per_node = 0;
    std::uint32_t planes = 1;  ///< links of a GPU inside its node: one per switch, or per peer
    std::uint32_t spines = 0;
    bool mesh = false;
    bool nics = false;

    Layout(const Machine& machine, bool fold_planes);

    std::size_t components() const { return 2 * gpus + ports(); }
    std::uint32_t ports() const { return spine_ports() + spines * gpus_per_node; }

    ComponentId gpu(std::uint32_t gpu) const { return gpu; }
    ComponentId egress(std::uint32_t gpu) const { return gpus + gpu; }
    ComponentId port(std::uint32_t port) const { return 2 * gpus + port; }

    // Ports, in the order of their numbers.
    std::uint32_t down(std::uint32_t gpu, std::uint32_t plane) const {
        return gpu * planes + plane;
    }
    std::uint32_t nic_down(std::uint32_t gpu) const { return down_ports() + gpu; }
    std::uint32_t leaf_up(std::uint32_t rail, std::uint32_t spine) const {
        return down_ports() + nic_ports() + rail * spines + spine;
    }
    std::uint32_t spine_down(std::uint32_t spine, std::uint32_t rail) const {
        return spine_ports() + spine * gpus_per_node + rail;
    }
    bool leads_to_gpu(std::uint32_t port) const { return port < first_leaf_up_; }
    bool is_nic_down(std::uint32_t port) const {
        return port >= down_ports() && port < down_ports() + nic_ports();
    }

    std::uint32_t node(std::uint32_t gpu) const { return gpu / gpus_per_node; }
    std::uint32_t rail(std::uint32_t gpu) const { return gpu % gpus_per_node; }
    bool same_node(std::uint32_t a, std::uint32_t b) const { return node(a) == node(b); }

    /// Uplinks of an egress: its planes, then its NIC.
    std::uint32_t uplinks() const { return planes + (nics ? 1 : 0); }
    bool is_nic(std::uint32_t uplink) const { return uplink >= planes; }
    /// The uplink that the packet at `line` (address / payload) takes. Equal addresses always take
    /// the same switch; each aligned group of as many lines as switches takes all of them in turn,
    /// starting at one that varies from group to group.
    std::uint32_t uplink(std::uint32_t src, std::uint32_t dst, std::uint64_t line) const;
    /// That of a line between the same GPUs, given that of the line before it.
    std::uint32_t uplink_after(std::uint32_t before, std::uint64_t line) const {
        if (planes == 1 || mesh || is_nic(before)) return before;
        if (line % planes == 0) return first_of_group(line / planes);
        return before + 1 == planes ? 0 : before + 1;
    }
    /// The inverse: the line of a group that takes the uplink.
    std::uint64_t line(std::uint64_t group, std::uint32_t uplink) const;
    /// Whether a transfer from src to dst may use the uplink.
    bool connects(std::uint32_t uplink_number, std::uint32_t src, std::uint32_t dst) const {
        if (is_nic(uplink_number) != !same_node(src, dst)) return false;
        return is_nic(uplink_number) || !mesh || uplink(src, dst, 0) == uplink_number;
    }

    /// Where a unit goes from its sender's egress, and from a port.
    ComponentId after_egress(const Unit& unit) const {
        if (is_nic(unit.plane)) return after_nic(unit);
        return mesh ? gpu(unit.dst) : port(down(unit.dst, unit.plane));
    }
    ComponentId after_port(std::uint32_t number, const Unit& unit) const {
        if (leads_to_gpu(number)) return gpu(unit.dst);
        return after_spine_link(number, unit);
    }

  private:
    std::uint32_t first_of_group(std::uint64_t group) const;
    ComponentId after_nic(const Unit& unit) const;
    ComponentId after_spine_link(std::uint32_t number, const Unit& unit) const;
    std::uint32_t down_ports() const { return mesh ? 0 : gpus * planes; }
    std::uint32_t nic_ports() const { return nics ? gpus : 0; }
    std::uint32_t spine_ports() const {
        return down_ports() + nic_ports() + spines * gpus_per_node;
    }
    std::uint32_t spine_of(const Unit& unit) const {
        return (node(unit.src) + node(unit.dst) + rail(unit.dst)) % spines;
    }

    std::uint32_t first_leaf_up_ = 0;
};

}  // namespace moehub::sim
