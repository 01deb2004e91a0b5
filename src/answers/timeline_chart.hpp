/// Simulated layers over time as a chart.
#pragma once
#include "report/chart.hpp"

#include <moehub/compare.hpp>

#include <string>
#include <vector>

namespace moehub {

/// Of systems whose links were recorded; without systems where none were. `notes` gets what was
/// joined or left out so that the page stays small, and how to move about.
TimelineChart timeline_chart(const Comparison& comparison, std::vector<std::string>& notes);

}  // namespace moehub
