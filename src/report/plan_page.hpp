/// Pages of planned training runs.
#pragma once
#include "report/page.hpp"
#include "report/plan_report.hpp"

#include <moehub/shape_search.hpp>

namespace moehub {

/// Document and command of each page are the caller's to fill in.
Page plan_page(const PlanCase& what, const Plan& plan);
/// One layout in full; `picture`: its pipeline, or empty.
Page plan_page(const PlanCase& what, const TrainingStep& step, const std::string& picture);
Page shape_page(const ShapeSearch& found, const TrainingRun& run);

}  // namespace moehub
