/// Rows of experts when every token chooses by itself and no expert is liked better.
#pragma once
#include "sim/kernels/expert_rows.hpp"

namespace moehub {

/// Expected of the rank with most. `draw` as of published measurements; its alpha and groups are
/// not read.
ExpertRows random_rows(const RowDraw& draw);

}  // namespace moehub
