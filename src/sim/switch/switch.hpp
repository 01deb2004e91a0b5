/// A switch: trains enter it, it looks up where they go and replicates those for a group of GPUs;
/// ports send them on. One of each node and plane, and the leaves and spines between nodes.
///
/// A unit that is to act on packets in a switch is a class of its own beside Gather: it is asked in
/// `enter`, before the ports, or in `Port::take`, on the way to one GPU.
#pragma once
#include "sim/switch/port.hpp"
#include "sim/topology.hpp"

#include <span>
#include <vector>

namespace moehub::sim {

class Switch {
  public:
    Switch(Fabric& fabric, SwitchId number);

    Ps run(Fabric& fabric, std::span<const Event> events, Ps until);

    std::span<const Port> ports() const { return ports_; }

  private:
    void enter(Fabric& fabric, const Event& event);
    void replicate(Fabric& fabric, const Event& event);
    std::uint32_t lookup(const Fabric& fabric, const Train& train) const;
    void hand_over(Fabric& fabric, std::uint32_t port, const Event& event);

    SwitchId number_;
    bool of_node_;
    std::uint32_t first_gpu_ = 0;  ///< of its node
    bool packets_ = true;
    std::vector<Port> ports_;
    std::vector<bool> waiting_;  ///< ports with packets
};

}  // namespace moehub::sim
