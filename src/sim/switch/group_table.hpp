/// Groups of GPUs that switches copy to and gather from: any list of GPUs of one node. A packet
/// names its group; equal lists are one group.
#pragma once
#include "sim/event.hpp"

#include <map>
#include <span>
#include <vector>

namespace moehub::sim {

class GroupTable {
  public:
    /// The group of these GPUs. Throws std::logic_error when there are none, or one twice.
    GroupId add(std::vector<GpuId> gpus);
    /// Ascending.
    std::span<const GpuId> members(GroupId group) const { return groups_[group]; }

  private:
    std::vector<std::vector<GpuId>> groups_;
    std::map<std::vector<GpuId>, GroupId> known_;
};

}  // namespace moehub::sim
