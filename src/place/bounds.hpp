/// Bounds from below: how even the loads of a layer can be at best, what an expert can have beside
/// it, and what no layout is below.
#pragma once
#include <moehub/place.hpp>

#include <span>

namespace moehub {

enum class SlotCounts {
    equal,  ///< as many slots on every GPU as it goes
    any,
};

/// A lower bound of the busiest GPU's rows over the mean; 0 without rows.
double load_bound(std::span<const double> rows_of_expert, int gpus,
                  SlotCounts slots = SlotCounts::equal);

/// How much an expert can share a GPU with, for bounds of what it cannot.
struct PartnerLimits {
    int count = 0;      ///< how many partners
    double budget = 0;  ///< sum of the partners' loads; infinite: no limit
};

/// A bound from above of sums of `count` gains whose loads are within the budget: the Lagrangian
///     min over λ ≥ 0 of  λ·budget + Σ of the `count` largest (gain − λ·load),
/// every value of which is such a bound; the least is looked for.
double most_gain(std::span<const double> gains, std::span<const double> loads,
                 const PartnerLimits& limits);

/// A bound of each part of an Evaluation on its own; what has none is 0. Weighted means over the
/// profiles. Where GPUs have different numbers of slots, only of the load.
Evaluation lower_bounds(const PlaceInput& input, const PlaceOptions& options,
                        const ExpertLayout& layout);

}  // namespace moehub
