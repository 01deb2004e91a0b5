/// Parallel layouts that a run may have, in families: members of a family differ in what is
/// recomputed and what waits on the host alone, so that what cuts the work is looked at once.
#pragma once
#include <moehub/plan.hpp>

#include <vector>

namespace moehub {

/// One layout of each family, with nothing recomputed and nothing on the host unless these are
/// fixed. Values that are fixed are taken as they are; all others divide what they have to, so that
/// why_not() refuses few.
std::vector<ParallelLayout> layout_families(const TrainingRun& run, const PlanOptions& options);

/// What members of a family differ in.
struct Saving {
    Recompute recompute;
    Offload offload;
};

/// Those that are searched; the first saves least.
std::vector<Saving> savings(const TrainingRun& run, const PartialLayout& fixed);

}  // namespace moehub
