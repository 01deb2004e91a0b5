/// SHARP in a leaf or spine switch: it adds up what the GPUs of a group send for the same address
/// and hands every one of them the sum. A leaf waits for its own GPUs of the group; where others
/// take part it sends one packet to a spine, the same for all, and its GPUs the one that comes
/// back.
#pragma once
#include "sim/event.hpp"
#include "sim/topology.hpp"

#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace moehub::sim {

class Fabric;

class NetworkSums {
  public:
    explicit NetworkSums(SwitchId number) : number_(number) {}

    /// Takes in a GPU's or a leaf's part, or a spine's sum; returns what goes on, its ports to be
    /// looked up by `port`. Valid until the next call.
    std::span<const Event> take(Fabric& fabric, const Event& event);
    /// The port that what was taken leaves by.
    std::uint32_t port(const Fabric& fabric, const Train& train) const;

    std::int64_t deepest() const { return deepest_; }  ///< sums that waited at once

  private:
    using Key = std::pair<GroupId, std::uint64_t>;  ///< a group, an address
    Key key_of(const Fabric& fabric, const Train& train) const;
    std::size_t parts(const Fabric& fabric, GroupId group);
    void answer(const Fabric& fabric, const Train& part, Ps now);

    SwitchId number_;
    std::map<Key, std::vector<Train>> waiting_;
    std::unordered_map<GroupId, std::size_t> parts_;  ///< that make a sum here, by group
    std::vector<Event> out_;
    std::int64_t deepest_ = 0;
};

}  // namespace moehub::sim
