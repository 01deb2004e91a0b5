/// Maps of numbers in the terminal.
#pragma once
#include "report/chart.hpp"
#include "report/text_style.hpp"

#include <string>

namespace moehub {

/// Title, lines of shaded blocks or of coloured cells with labels in front of rows, and what the
/// shades mean; of a map that is larger than people see neighbours are merged. Empty where
/// terminals do not show the map.
std::string heat_text(const HeatChart& chart, const TextStyle& style);

}  // namespace moehub
