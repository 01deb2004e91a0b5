#include "sim/switch/group_table.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

GroupId GroupTable::append(std::span<const GpuId> gpus) {
    groups_.push_back({gpus_.size(), static_cast<std::uint32_t>(gpus.size()), false});
    gpus_.insert(gpus_.end(), gpus.begin(), gpus.end());
    first_region_.resize(gpus_.size() + 1, regions_.size());
    return static_cast<GroupId>(groups_.size() - 1);
}

GroupId GroupTable::add(std::vector<GpuId> gpus) {
    std::sort(gpus.begin(), gpus.end());
    if (gpus.empty() || std::adjacent_find(gpus.begin(), gpus.end()) != gpus.end())
        throw std::logic_error("a group of GPUs is empty or has one twice");
    const auto known = known_.find(gpus);
    if (known != known_.end()) return known->second;
    const GroupId id = append(gpus);
    known_.emplace(std::move(gpus), id);
    return id;
}

GroupId GroupTable::add_list(std::vector<RowGoal> goals) {
    std::sort(goals.begin(), goals.end());
    if (goals.empty() || std::adjacent_find(goals.begin(), goals.end()) != goals.end())
        throw std::logic_error("a list of targets is empty or has one twice");
    const GroupId id = append({});
    Group& group = groups_[id];
    group.list = true;
    for (const RowGoal& goal : goals) {
        if (group.count == 0 || gpus_.back() != goal.gpu) {
            gpus_.push_back(goal.gpu);
            ++group.count;
            first_region_.push_back(0);
        }
        regions_.push_back(goal.region);
        first_region_.back() = regions_.size();
    }
    return id;
}

std::span<const RegionId> GroupTable::regions_on(GroupId group, GpuId gpu) const {
    const auto gpus = members(group);
    const auto found = std::lower_bound(gpus.begin(), gpus.end(), gpu);
    if (found == gpus.end() || *found != gpu)
        throw std::logic_error("a list of targets came to a GPU that is not in it");
    return regions(group, static_cast<std::size_t>(found - gpus.begin()));
}

std::size_t GroupTable::goals(GroupId group) const {
    const Group& one = groups_[group];
    return first_region_[one.first + one.count] - first_region_[one.first];
}

}  // namespace moehub::sim
