/// MoETuner's first integer program: the experts of one layer in clusters of even load.
#pragma once
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

namespace moehub {

struct BalanceTask {
    std::span<const double> load;  ///< of each expert
    int clusters = 1;              ///< at most as many as experts; a divisor unless unequal
    bool unequal = false;          ///< clusters of any size, none empty
    /// What the search may do: nodes times switches (clusters times experts). The same everywhere.
    std::int64_t work = 1'000'000;
    double seconds = 10;  ///< the last resort
    std::stop_token stop = {};
};

struct BalancedClusters {
    std::vector<std::vector<int>> experts;  ///< [cluster], ascending
    double uneven = 0;                      ///< Σ |load of a cluster − mean| over the mean
    bool proven = false;                    ///< within the program's tolerance
    bool too_large = false;                 ///< for the integer program: the start is the answer
    bool cut_short = false;                 ///< by the clock or by stop
    std::int64_t work = 0;                  ///< that was done
};

/// The integer program, started from pack_by_swaps().
BalancedClusters balanced_clusters(const BalanceTask& task);

}  // namespace moehub
