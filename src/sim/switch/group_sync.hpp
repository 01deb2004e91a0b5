/// CAIS's group-sync table of a switch: GPUs meet at an address. Their trains are counted, and when
/// as many have come as must, each of them is acknowledged.
#pragma once
#include "sim/event.hpp"

#include <span>
#include <unordered_map>
#include <vector>

namespace moehub::sim {

class Fabric;
struct Wire;

struct GroupSyncStats {
    std::int64_t meetings = 0;  ///< at which all came
    std::int64_t deepest = 0;   ///< groups that wait at once in one switch
};

class GroupSync {
  public:
    explicit GroupSync(const Wire& wire) : wire_(&wire) {}

    /// Takes in a GPU's train; returns what goes on to those who met. Valid until the next call.
    std::span<const Event> take(Fabric& fabric, const Event& event);

    const GroupSyncStats& stats() const { return stats_; }

  private:
    void answer(const Train& train, Ps now);

    const Wire* wire_;
    std::unordered_map<std::uint64_t, std::vector<Train>> waiting_;  ///< by address: who has come
    std::vector<Event> out_;
    GroupSyncStats stats_;
};

}  // namespace moehub::sim
