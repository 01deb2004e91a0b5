/// Where everything is: numbering of components and the way a train takes through them.
///
/// Inside a node a train goes egress(src) → switch of its plane → gpu(dst); in a mesh it goes
/// egress(src) → gpu(dst). Between nodes it goes egress(src) → leaf switch of src → [spine → leaf
/// of dst] → gpu(dst). GPU i of every node is on rail i; a leaf joins those of a rail in a unit of
/// some nodes, and spines join all leaves.
#pragma once
#include "sim/event.hpp"

#include <moehub/machine.hpp>

namespace moehub::sim {

using SwitchId = std::uint32_t;

struct Topology {
    std::uint32_t gpus = 0;
    std::uint32_t nodes = 1;
    std::uint32_t gpus_per_node = 0;
    std::uint32_t planes = 1;      ///< links of a GPU inside its node: one per switch, or per peer
    std::uint32_t leaf_nodes = 1;  ///< nodes of a unit, which a leaf joins
    std::uint32_t spines = 0;
    std::uint32_t uplinks_of_leaf = 0;  ///< uplinks of a leaf over all spines, each of a NIC's rate
    bool adaptive = false;              ///< a leaf chooses the spine by packet
    bool mesh = false;
    bool nics = false;

    Topology(const Machine& machine, bool fold_planes);

    std::size_t components() const { return 2 * gpus + switches(); }
    ComponentId gpu(std::uint32_t gpu) const { return gpu; }
    ComponentId egress(std::uint32_t gpu) const { return gpus + gpu; }
    ComponentId of_switch(SwitchId number) const { return 2 * gpus + number; }

    std::uint32_t node(std::uint32_t gpu) const { return gpu / gpus_per_node; }
    std::uint32_t rail(std::uint32_t gpu) const { return gpu % gpus_per_node; }
    bool same_node(std::uint32_t a, std::uint32_t b) const { return node(a) == node(b); }

    // Switches, in the order of their numbers: those of nodes, the rails' leaves, spines.
    enum class Tier { node, leaf, spine };
    SwitchId node_switch(std::uint32_t node, std::uint32_t plane) const {
        return node * planes + plane;
    }
    std::uint32_t units() const { return (nodes + leaf_nodes - 1) / leaf_nodes; }
    std::uint32_t leaves() const { return units() * gpus_per_node; }
    /// The leaf that a GPU's NIC is on.
    SwitchId leaf(std::uint32_t gpu) const {
        return first_leaf_ + node(gpu) / leaf_nodes * gpus_per_node + rail(gpu);
    }
    SwitchId spine(std::uint32_t number) const { return first_spine_ + number; }
    std::uint32_t switches() const { return first_spine_ + spines; }
    Tier tier(SwitchId number) const {
        if (number < first_leaf_) return Tier::node;
        return number < first_spine_ ? Tier::leaf : Tier::spine;
    }
    /// A node's switch has a port to each of its GPUs; a leaf one to its GPU in each node of its
    /// unit, then one to each spine; a spine one to each leaf.
    std::uint32_t ports(SwitchId number) const;
    bool leads_to_gpu(SwitchId number, std::uint32_t port) const {
        return tier(number) != Tier::spine && (tier(number) == Tier::node || port < leaf_nodes);
    }
    /// Who is at the other end of a port.
    ComponentId behind_port(SwitchId number, std::uint32_t port) const;
    /// The port that a train leaves by.
    std::uint32_t port_towards(SwitchId number, const Train& train) const;

    /// Uplinks of an egress: its planes, then its NIC.
    std::uint32_t uplinks() const { return planes + (nics ? 1 : 0); }
    bool is_nic(std::uint32_t uplink) const { return uplink >= planes; }
    /// The uplink that the packet at `line` (address / payload) takes. Equal addresses always take
    /// the same switch; each aligned group of as many lines as switches takes all of them in turn,
    /// starting at one that varies from group to group.
    std::uint32_t uplink(std::uint32_t src, std::uint32_t dst, std::uint64_t line) const;
    /// The uplink of a line, given that of the line before it between the same GPUs.
    std::uint32_t uplink_after(std::uint32_t before, std::uint64_t line) const {
        if (planes == 1 || mesh || is_nic(before)) return before;
        if (line % planes == 0) return first_of_group(line / planes);
        return before + 1 == planes ? 0 : before + 1;
    }
    /// The line of a group that takes the uplink: the inverse of `uplink`.
    std::uint64_t line(std::uint64_t group, std::uint32_t uplink) const;
    /// Whether a transfer from src to dst may use the uplink.
    bool connects(std::uint32_t uplink_number, std::uint32_t src, std::uint32_t dst) const {
        if (is_nic(uplink_number) != !same_node(src, dst)) return false;
        return is_nic(uplink_number) || !mesh || uplink(src, dst, 0) == uplink_number;
    }
    /// Where a train goes from its sender's egress.
    ComponentId after_egress(const Train& train) const {
        if (is_nic(train.plane)) return after_nic(train);
        return mesh ? gpu(train.dst) : of_switch(node_switch(node(train.src), train.plane));
    }

  private:
    void join_leaves(const Machine& machine);
    ComponentId behind_leaf(std::uint32_t index, std::uint32_t port) const;
    std::uint32_t first_of_group(std::uint64_t group) const;
    ComponentId after_nic(const Train& train) const;
    std::uint32_t spine_of(const Train& train) const {
        return (node(train.src) + node(train.dst) + rail(train.dst)) % spines;
    }

    SwitchId first_leaf_ = 0;
    SwitchId first_spine_ = 0;
};

}  // namespace moehub::sim
