/// The last round of a search: the best by tables are simulated exactly and sorted again.
#pragma once
#include "plan/search/clock_pool.hpp"
#include "plan/search/record.hpp"

#include <moehub/plan.hpp>

namespace moehub {

/// Fills best, systems, front and, where nothing fits, nearest.
void add_finalists(ClockPool& clocks, const PlanOptions& options, const SearchRecord& record,
                   Plan& plan);

}  // namespace moehub
