/// MoETuner's two integer programs: the experts of one layer in clusters of even load; and which
/// GPU gets which cluster, layer by layer, so that the heaviest pair of GPUs between two layers is
/// light.
#pragma once
#include "place/counts.hpp"

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

namespace moehub {

struct BalanceTask {
    std::span<const double> load;  ///< rows of each expert
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

/// The paper leaves the bandwidth of a pair open. Between nodes a GPU has a quarter of what it has
/// within, or less (NVLink 450 GB/s, a NIC 50 to 100 GB/s); place() weighs nodes the same way.
inline constexpr double kAcrossNodes = 4;

struct LabelTask {
    std::vector<Matrix> traffic;  ///< between layers l and l + 1: [cluster × cluster of the next]
    std::vector<std::vector<int>> sizes;  ///< experts, [layer][cluster]
    int gpus = 1;                         ///< as many as clusters in every layer
    int nodes = 1;
    std::uint64_t seed = 1;           ///< what labels_by_search() draws from
    std::int64_t work = 200'000'000;  ///< pairs of GPUs that it may look at; under a second
};

/// What traffic between two GPUs counts.
inline double weight_of_pair(const LabelTask& task, int from, int to) {
    const int gpus_per_node = task.gpus / task.nodes;
    return from / gpus_per_node == to / gpus_per_node ? 1 : kAcrossNodes;
}

/// [layer][gpu] → cluster, one to one.
using Labels = std::vector<std::vector<int>>;

struct LabelLimits {
    int nodes = 1000;             ///< that the integer program may look at
    int simplex_steps = 100'000;  ///< that the integer program may take
    double seconds = 5;           ///< the last resort
    std::stop_token stop = {};
};
struct LabelResult {
    Labels labels;
    bool proven = false;     ///< optimal; of the integer program, within the paper's tolerance
    bool cut_short = false;  ///< by the clock or by stop
};

/// Whether all clusters have one size; then memory is no question.
bool equal_sizes(const LabelTask& task);
/// Experts that a GPU may hold over all layers. The paper wants experts · layers / gpus exactly,
/// which is seldom possible: one more than that, or what filling up the emptiest GPU first needs.
int memory_of_gpu(const LabelTask& task);
bool fits_memory(const LabelTask& task, const Labels& labels);

/// Between two layers, `before` and `after` their clusters by GPU: the heaviest ordered pair of
/// different GPUs, pairs on two nodes kAcrossNodes times.
double heaviest_pair(const LabelTask& task, int boundary, const std::vector<int>& before,
                     const std::vector<int>& after);
/// What is minimised: their sum.
double heaviest_pairs(const LabelTask& task, const Labels& labels);

/// Optimal on one node with equal sizes; elsewhere a start. Fits the memory.
Labels matched_labels(const LabelTask& task);
/// Whether matched_labels() is optimal.
bool matching_is_optimal(const LabelTask& task);

/// Optimal, by dynamic programming, where sizes are equal and GPUs at most 8. Unless stopped or
/// late: then `proven` is false.
inline constexpr int kMostChainedGpus = 8;
LabelResult labels_by_chain(const LabelTask& task, const LabelLimits& limits);

/// Never worse than `start`. A fixed number of steps, unless stopped.
Labels labels_by_search(const LabelTask& task, Labels start, const std::stop_token& stop);

/// Products of two switches that the program has.
std::int64_t label_products(const LabelTask& task);
/// The integer program; never worse than `start`.
LabelResult labels_by_program(const LabelTask& task, const Labels& start,
                              const LabelLimits& limits);

}  // namespace moehub
