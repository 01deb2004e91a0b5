/// The last round of a search: the best by tables are simulated exactly and sorted again.
#pragma once
#include "plan/search/record.hpp"

#include <moehub/plan.hpp>

namespace moehub {

/// Fills best, systems, front and, where nothing fits, nearest.
void add_finalists(const TrainingClock& clock, const PlanOptions& options,
                   const SearchRecord& record, Plan& plan);

}  // namespace moehub
