/// How much an expert can share a GPU with: an upper bound, for lower bounds of what it cannot.
#pragma once
#include <span>
#include <vector>

namespace moehub {

struct PartnerLimits {
    int count = 0;      ///< of partners
    double budget = 0;  ///< of their loads; infinite: none
};

/// At least the largest sum of `count` gains whose loads are within the budget. By the Lagrangian
///     min over λ ≥ 0 of  λ·budget + Σ of the `count` largest (gain − λ·load),
/// every value of which is such a bound; the least is looked for.
double most_gain(std::span<const double> gains, std::span<const double> loads,
                 const PartnerLimits& limits);

}  // namespace moehub
