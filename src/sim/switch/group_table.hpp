/// Whom switches copy to and gather from, inside one node. A packet names its group:
/// - a fixed list of GPUs, as NVLS has them; equal ones are one group;
/// - a list of targets that travels with the packet (DySHARP): regions of rows on GPUs, several on
///   one GPU perhaps. A GPU's copy has the list of its own targets alone.
#pragma once
#include "sim/transfer.hpp"

#include <map>
#include <span>
#include <vector>

namespace moehub::sim {

/// Where a row goes by a list: a region of rows on a GPU.
struct RowGoal {
    GpuId gpu = 0;
    RegionId region = kNoRegion;
    auto operator<=>(const RowGoal&) const = default;
};

class GroupTable {
  public:
    /// The group of these GPUs. Throws std::logic_error when there are none, or one twice.
    GroupId add(std::vector<GpuId> gpus);
    /// A group for a list of its own, in any order. Throws, too, for a region that is there twice.
    GroupId add_list(std::vector<RowGoal> goals);

    /// The GPUs of a group, ascending.
    std::span<const GpuId> members(GroupId group) const {
        const Group& one = groups_[group];
        return {gpus_.data() + one.first, one.count};
    }
    bool is_list(GroupId group) const { return groups_[group].list; }
    /// The regions of a list's member-th GPU, ascending.
    std::span<const RegionId> regions(GroupId group, std::size_t member) const {
        const std::size_t at = groups_[group].first + member;
        return {regions_.data() + first_region_[at], first_region_[at + 1] - first_region_[at]};
    }
    /// The regions of a list on a GPU that is in it.
    std::span<const RegionId> regions_on(GroupId group, GpuId gpu) const;
    std::size_t goals(GroupId group) const;  ///< regions of a list in all

  private:
    struct Group {
        std::size_t first = 0;  ///< index in gpus_
        std::uint32_t count = 0;
        bool list = false;
    };
    GroupId append(std::span<const GpuId> gpus);

    std::vector<Group> groups_;
    std::vector<GpuId> gpus_;
    std::vector<std::size_t> first_region_{0};  ///< first in regions_, by gpus_, and one behind
    std::vector<RegionId> regions_;
    std::map<std::vector<GpuId>, GroupId> known_;
};

}  // namespace moehub::sim
