/// Values that each key of a parallel layout may take.
#pragma once
#include <moehub/training.hpp>

#include <optional>
#include <vector>

namespace moehub {

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

}  // namespace moehub
