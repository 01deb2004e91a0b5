/// Placement: which expert-parallel ranks hold which expert.
#pragma once
#include <vector>

namespace moehub {

struct Placement {
    int ranks = 0;                        ///< expert-parallel ranks
    std::vector<std::vector<int>> hosts;  ///< [expert] → ranks with a copy, ascending, at least one
};

/// Expert by expert, as evenly as it goes: the first experts % ranks ranks have one more.
Placement contiguous_placement(int experts, int ranks);

/// The placement with `redundant` further copies for the experts that are asked for most (by rows
/// per copy), each on the rank with the fewest expected rows that lacks it; slots stay even.
Placement with_replicas(const Placement& placement, const std::vector<long long>& rows_of_expert,
                        int redundant);

/// Experts on each rank, ascending.
std::vector<std::vector<int>> experts_by_rank(const Placement& placement);

/// Throws InputError when an expert has no host, or one that does not exist, or one twice.
void check(const Placement& placement, int experts);

}  // namespace moehub
