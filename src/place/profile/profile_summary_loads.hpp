/// Numbers that say how uneven loads are.
#pragma once
#include <moehub/profile_summary.hpp>

#include <span>

namespace moehub {

/// All of LoadSummary but `tokens`.
LoadSummary load_summary(std::span<const double> rows_of_expert, int gpus);

/// GPU of each expert, experts in order.
std::vector<int> contiguous_gpus(int experts, int gpus);

/// How many things were drawn on each side; each brought `per_draw` rows, all of different experts.
struct Draws {
    double first = 0;
    double second = 0;
    double per_draw = 1;
};
/// None where a side has no rows.
std::optional<LoadDifference> load_difference(std::span<const double> first,
                                              std::span<const double> second, const Draws& draws);

}  // namespace moehub
