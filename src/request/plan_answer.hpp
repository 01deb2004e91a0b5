/// What can be wrong with a plan's answer, or with one layout that is to be explained.
#pragma once
#include "report/plan_report.hpp"

#include <string>

namespace moehub {

/// Throws InputError when nothing fits: by how much the smallest misses, and what would do.
void require_fit(const PlanCase& what, const PlanOptions& options, const Plan& plan);

/// As typed after --explain. Throws InputError.
ParallelLayout explained_layout(const std::string& text);

}  // namespace moehub
