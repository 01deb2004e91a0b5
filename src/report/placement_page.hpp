/// A page of a placement of experts.
#pragma once
#include "report/page.hpp"
#include "report/placement_report.hpp"

namespace moehub {

/// Configuration, document and command are the caller's to fill in.
Page placement_page(const PlacementReport& report);

}  // namespace moehub
