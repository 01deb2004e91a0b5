/// Parallel layouts that a run may have, in families: members of a family differ in what is
/// recomputed and what waits on the host alone, so that what cuts the work is looked at once.
#pragma once
#include <moehub/plan.hpp>
#include <moehub/training.hpp>

#include <optional>
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

// Values that each key of a parallel layout may take.

/// A whole number of a parallel layout, and its values where those before it are chosen.
struct Axis {
    int ParallelLayout::*member;
    std::optional<int> PartialLayout::*fixed;
    std::vector<int> (*values)(const TrainingRun& run, const ParallelLayout& chosen);
};

/// In the order in which they are to be chosen.
const std::vector<Axis>& layout_axes();

/// Where nothing is left to share, sharding changes nothing: zero1 alone.
std::vector<Sharding> sharding_values(const TrainingRun& run, const ParallelLayout& chosen);
std::vector<PassOverlap> overlap_values(const TrainingRun& run, const ParallelLayout& chosen);

/// 0 where the batch does not divide.
std::int64_t micro_batches_of(const TrainingRun& run, const ParallelLayout& layout);

/// Bytes that some stage's GPUs take at least, however the model is cut.
double least_memory(const TrainingRun& run, const ParallelLayout& layout);

}  // namespace moehub
