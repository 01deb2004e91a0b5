/// The report page of a sweep: times and speed-ups over each axis, the table, what was refused.
#pragma once
#include "report/page.hpp"
#include "study/sweep/table.hpp"

namespace moehub {

Page sweep_page(const Study& study, const SweepOutcomes& outcomes);

}  // namespace moehub
