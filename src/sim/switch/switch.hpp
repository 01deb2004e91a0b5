/// A switch: trains enter it, it looks up where they go and replicates those for a group of GPUs;
/// ports send them on. One of each node and plane, and the leaves and spines between nodes.
///
/// A unit that is to act on packets in a switch is a class of its own beside Gather: it is asked in
/// `enter`, before the ports, or in `Port::take`, on the way to one GPU.
#pragma once
#include "sim/switch/gather.hpp"
#include "sim/switch/merge_unit.hpp"
#include "sim/switch/port.hpp"
#include "sim/topology.hpp"

#include <memory>
#include <span>
#include <vector>

namespace moehub::sim {

class Recorder;

class Switch {
  public:
    Switch(Fabric& fabric, SwitchId number);

    Ps run(Fabric& fabric, std::span<const Event> events, Ps until);

    std::span<const Port> ports() const { return ports_; }
    /// The unit of the port's GPU as a home; null where nothing was ever merged.
    const MergeUnit* merge_unit(std::size_t port) const { return merging_[port].get(); }
    /// The group-sync table; null where nobody ever met.
    const GroupSync* group_sync() const { return group_sync_.get(); }

  private:
    void record(Recorder& recorder, const Fabric& fabric, const Event& event) const;
    void enter(Fabric& fabric, const Event& event);
    void replicate(Fabric& fabric, const Event& event);
    std::uint32_t lookup(const Fabric& fabric, const Train& train) const;
    std::uint32_t least_booked(const Fabric& fabric, std::uint32_t hashed, const Event& event);
    void hand_over(Fabric& fabric, std::uint32_t port, const Event& event);
    void merge(Fabric& fabric, const Event& event);
    void meet(Fabric& fabric, const Event& event);
    bool added_here(const Fabric& fabric, const Train& train) const;
    void add_up(Fabric& fabric, const Event& event);
    void send_on(Fabric& fabric, std::span<const Event> made);
    void expire(Fabric& fabric, Ps before);
    Ps next_wake(Ps ports, Ps until);

    SwitchId number_;
    bool of_node_;
    std::uint32_t first_gpu_ = 0;  ///< first GPU of its node
    bool packets_ = true;
    std::vector<Port> ports_;
    std::vector<Ps> booked_;     ///< until when each spine is booked, by an adaptive leaf
    std::vector<bool> waiting_;  ///< ports with packets
    std::vector<std::unique_ptr<MergeUnit>> merging_;  ///< merge unit of each port
    std::unique_ptr<GroupSync> group_sync_;
    std::unique_ptr<NetworkSums> network_sums_;  ///< null until something is added up here
    Ps next_expiry_ = kNever;                    ///< earliest timeout in the merge units, or before
    Ps woken_ = -1;                              ///< when it last asked to be run for a timeout
};

}  // namespace moehub::sim
