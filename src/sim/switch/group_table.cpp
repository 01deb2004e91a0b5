#include "sim/switch/group_table.hpp"

#include <algorithm>
#include <stdexcept>

namespace moehub::sim {

GroupId GroupTable::add(std::vector<GpuId> gpus) {
    std::sort(gpus.begin(), gpus.end());
    if (gpus.empty() || std::adjacent_find(gpus.begin(), gpus.end()) != gpus.end()) {
        throw std::logic_error("a group of GPUs is empty or has one twice");
    }
    const auto [found, added] = known_.try_emplace(gpus, static_cast<GroupId>(groups_.size()));
    if (added) groups_.push_back(std::move(gpus));
    return found->second;
}

}  // namespace moehub::sim
