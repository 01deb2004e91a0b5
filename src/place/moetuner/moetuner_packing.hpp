/// The experts of one layer in clusters, by a heuristic: where MoETuner's first program starts.
#pragma once
#include "place/moetuner/moetuner_clusters.hpp"

#include <vector>

namespace moehub {

/// Loads in units of a cluster's mean; experts by load, heaviest first.
struct ScaledLoads {
    std::vector<double> load;
    std::vector<int> order;
};
ScaledLoads scaled_loads(const BalanceTask& task);

/// Which cluster each expert is in, with the sums that searches need.
struct Packing {
    std::vector<int> cluster;  ///< [expert]
    std::vector<double> load;  ///< [cluster]
    std::vector<int> size;     ///< [cluster]
};
/// Σ |load of a cluster − 1|.
double uneven(const Packing& packing);
void move(Packing& packing, const ScaledLoads& loads, int expert, int to);

/// Longest first, each to the lightest cluster with room; then swaps (and moves, where sizes may
/// differ) while they help.
Packing pack_by_swaps(const BalanceTask& task, const ScaledLoads& loads);

}  // namespace moehub
