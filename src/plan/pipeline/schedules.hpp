/// The two kinds of schedule behind run_pipeline, and what they share.
#pragma once
#include "plan/pipeline/pipeline.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {

/// Seconds that a forward of this piece and a backward of another micro-batch save as a pair. What
/// rounding leaves of forward + backward is no saving: it would choose another order of tasks.
inline double pair_saving(const PieceTime& piece) {
    const double apart = piece.forward + piece.backward;
    const double saving = piece.pair > 0 ? apart - piece.pair : 0;
    return std::abs(saving) > 1e-9 * apart ? saving : 0;
}

/// A forward of one piece beside a backward of another: each brings half of its own saving. Where
/// pieces differ much, the longer of the two sets a limit, unless it is longer than pairs of its
/// own.
inline double pair_seconds(const PieceTime& forward, const PieceTime& backward) {
    const double saving = (pair_saving(forward) + pair_saving(backward)) / 2;
    const double longer = std::max(forward.forward, backward.backward);
    const double own = std::max(forward.forward + forward.backward - pair_saving(forward),
                                backward.forward + backward.backward - pair_saving(backward));
    return std::max(forward.forward + backward.backward - saving, std::min(longer, own));
}

/// Plain and interleaved 1F1B. The input is one that run_pipeline accepts.
PipelineResult run_one_f_one_b(const PipelineInput& input, bool keep_tasks);

/// DualPipe. The input is one that run_pipeline accepts.
PipelineResult run_dualpipe(const PipelineInput& input, bool keep_tasks);

}  // namespace moehub
