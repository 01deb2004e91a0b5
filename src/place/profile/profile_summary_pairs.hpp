/// Numbers that say how choices of experts hang together.
#pragma once
#include "place/profile/pair_counter.hpp"

#include <moehub/profile_summary.hpp>

#include <vector>

namespace moehub {

CoactivationSummary coactivation_summary(PairCounter& counter, int layer, int top_pairs);
/// `gpu_of` each expert, the same in both layers.
TransitionSummary transition_summary(PairCounter& counter, int layer,
                                     const std::vector<int>& gpu_of);

/// Over chance, flat, [expert][expert]. See PairMatrices.
std::vector<double> coactivation_lift(PairCounter& counter, int layer);
std::vector<double> transition_lift(PairCounter& counter, int layer);

}  // namespace moehub
