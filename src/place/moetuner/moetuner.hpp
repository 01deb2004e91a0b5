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
    int clusters = 1;              ///< clusters, at most the experts; a divisor unless unequal
    bool unequal = false;          ///< clusters may have any size, none empty
    /// What the search may do on any machine: nodes times switches (clusters times experts).
    std::int64_t work = 1'000'000;
    double seconds = 10;  ///< time limit, the last resort
    std::stop_token stop = {};
};

struct BalancedClusters {
    std::vector<std::vector<int>> experts;  ///< experts of each cluster, ascending
    double uneven = 0;                      ///< Σ |load of a cluster − mean| over the mean
    bool proven = false;                    ///< optimal within the program's tolerance
    bool too_large = false;                 ///< no integer program: the start is the answer
    bool cut_short = false;                 ///< the clock or stop ended the search
    std::int64_t work = 0;                  ///< work that was done
};

/// Clusters by the integer program, started from pack_by_swaps().
BalancedClusters balanced_clusters(const BalanceTask& task);

/// Weight of traffic between nodes. The paper leaves bandwidths open; a GPU has a quarter between
/// nodes or less (NVLink 450 GB/s, a NIC 50 to 100 GB/s); place() weighs nodes the same way.
inline constexpr double kAcrossNodes = 4;

struct LabelTask {
    std::vector<Matrix> traffic;          ///< layers l to l + 1: [cluster × cluster of the next]
    std::vector<std::vector<int>> sizes;  ///< number of experts, [layer][cluster]
    int gpus = 1;                         ///< number of GPUs, as many as clusters in every layer
    int nodes = 1;
    std::uint64_t seed = 1;           ///< seed of what labels_by_search() draws
    std::int64_t work = 200'000'000;  ///< pairs of GPUs that it may look at; under a second
};

/// What traffic between two GPUs counts.
inline double weight_of_pair(const LabelTask& task, int from, int to) {
    const int gpus_per_node = task.gpus / task.nodes;
    return from / gpus_per_node == to / gpus_per_node ? 1 : kAcrossNodes;
}

/// Which GPU has which cluster: [layer][gpu] → cluster, one to one.
using Labels = std::vector<std::vector<int>>;

struct LabelLimits {
    int nodes = 1000;             ///< nodes that the integer program may look at
    int simplex_steps = 100'000;  ///< steps that the integer program may take
    double seconds = 5;           ///< time limit, the last resort
    std::stop_token stop = {};
};
struct LabelResult {
    Labels labels;
    bool proven = false;     ///< optimal; the integer program's within its tolerance
    bool cut_short = false;  ///< the clock or stop ended the search
};

/// Whether all clusters have one size; then memory is no question.
bool equal_sizes(const LabelTask& task);
/// Experts that a GPU may hold over all layers. The paper wants experts · layers / gpus exactly,
/// which is seldom possible: one more than that, or what filling up the emptiest GPU first needs.
int memory_of_gpu(const LabelTask& task);
bool fits_memory(const LabelTask& task, const Labels& labels);

/// The heaviest ordered pair of different GPUs between two layers, pairs on two nodes counted
/// kAcrossNodes times; `before` and `after` are the layers' clusters by GPU.
double heaviest_pair(const LabelTask& task, int boundary, const std::vector<int>& before,
                     const std::vector<int>& after);
/// What is minimised: the sum of heaviest_pair() over all boundaries.
double heaviest_pairs(const LabelTask& task, const Labels& labels);

/// Labels that are optimal on one node with equal sizes; elsewhere a start. They fit the memory.
Labels matched_labels(const LabelTask& task);
/// Whether matched_labels() is optimal.
bool matching_is_optimal(const LabelTask& task);

/// Optimal labels, by dynamic programming, where sizes are equal and GPUs at most 8. Unless stopped
/// or late: then `proven` is false.
inline constexpr int kMostChainedGpus = 8;
LabelResult labels_by_chain(const LabelTask& task, const LabelLimits& limits);

/// Labels never worse than `start`, after a fixed number of steps unless stopped.
Labels labels_by_search(const LabelTask& task, Labels start, const std::stop_token& stop);

/// Products of two switches that the integer program has.
std::int64_t label_products(const LabelTask& task);
/// Labels by the integer program; never worse than `start`.
LabelResult labels_by_program(const LabelTask& task, const Labels& start,
                              const LabelLimits& limits);

}  // namespace moehub
