/// How even one copy of each expert can make the GPUs' loads at best.
#pragma once
#include <span>

namespace moehub {

enum class SlotCounts {
    equal,  ///< as many slots on every GPU as it goes
    any,
};

/// A lower bound of the busiest GPU's rows over the mean. 0 without rows.
double load_bound(std::span<const double> rows_of_expert, int gpus,
                  SlotCounts slots = SlotCounts::equal);

}  // namespace moehub
