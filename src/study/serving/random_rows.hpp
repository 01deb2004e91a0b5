/// Rows of experts when every token chooses by itself; some experts may be liked better.
#pragma once
#include "sim/kernels/kernels.hpp"

namespace moehub {

/// Expected of the rank with most. `draw` as of published measurements: experts' shares follow a
/// power law of its alpha. Its groups are not read.
ExpertRows random_rows(const RowDraw& draw);

}  // namespace moehub
