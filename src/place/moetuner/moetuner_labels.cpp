// What MoETuner's second program (arXiv 2502.06643) minimises, and a start for it:
//   min Σ_l max over GPUs g ≠ h of B[g,h] · C_l[cluster of g in layer l, cluster of h in layer
//   l+1].
//
// On one node every B is 1 and GPUs have no names, so each boundary is a problem of its own: choose
// which pairs of clusters share a GPU. The rest's heaviest is at most t when all entries above t
// can share, that is, when no two of them are in one row or column. Sorting finds the least such t.
#include "base/portable_math.hpp"
#include "base/rng.hpp"
#include "place/assignment.hpp"
#include "place/exact/exact.hpp"
#include "place/methods.hpp"
#include "place/moetuner/moetuner.hpp"

#include <bit>
#include <numeric>
#include <utility>

namespace moehub {
namespace {

std::vector<int> totals_of(const LabelTask& task, const Labels& labels) {
    std::vector<int> totals(at(task.gpus));
    for (std::size_t layer = 0; layer < labels.size(); ++layer)
        for (int gpu = 0; gpu < task.gpus; ++gpu)
            totals[at(gpu)] += task.sizes[layer][at(labels[layer][at(gpu)])];
    return totals;
}

/// Labels that in every layer give the largest cluster to the GPU with the fewest experts so far.
Labels evenly_filled(const LabelTask& task) {
    Labels labels;
    std::vector<int> totals(at(task.gpus));
    for (const auto& sizes : task.sizes) {
        std::vector<int> clusters(at(task.gpus));
        std::iota(clusters.begin(), clusters.end(), 0);
        std::vector<int> gpus = clusters;
        std::stable_sort(clusters.begin(), clusters.end(),
                         [&](int a, int b) { return sizes[at(a)] > sizes[at(b)]; });
        std::stable_sort(gpus.begin(), gpus.end(),
                         [&](int a, int b) { return totals[at(a)] < totals[at(b)]; });
        auto& layer = labels.emplace_back(at(task.gpus));
        for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
            layer[at(gpus[rank])] = clusters[rank];
            totals[at(gpus[rank])] += sizes[at(clusters[rank])];
        }
    }
    return labels;
}

/// The least t such that entries above it are in different rows and columns.
double least_heaviest(const Matrix& traffic) {
    std::vector<std::pair<double, std::pair<int, int>>> entries;
    for (int row = 0; row < traffic.rows; ++row)
        for (int column = 0; column < traffic.columns; ++column)
            entries.push_back({-traffic(row, column), {row, column}});
    std::sort(entries.begin(), entries.end());
    std::vector<bool> row_taken(at(traffic.rows)), column_taken(at(traffic.columns));
    for (const auto& [negative, cell] : entries) {
        if (row_taken[at(cell.first)] || column_taken[at(cell.second)]) return -negative;
        row_taken[at(cell.first)] = column_taken[at(cell.second)] = true;
    }
    return 0;
}

/// The matching that keeps most on its GPU among those with the least heaviest pair.
std::vector<int> best_matching(const Matrix& traffic) {
    const double least = least_heaviest(traffic);
    const double sum = std::accumulate(traffic.at_.begin(), traffic.at_.end(), 0.0);
    Matrix gain = traffic;
    for (double& value : gain.at_)
        if (value > least) value += sum;
    return best_assignment(gain);
}

/// Fills prices [gpu × cluster]: the heaviest that another GPU sends it, were the cluster there.
void fill_prices(const LabelTask& task, int boundary, const std::vector<ExpertSet>& before,
                 Matrix& prices) {
    for (int to = 0; to < task.gpus; ++to)
        for (int cluster = 0; cluster < task.gpus; ++cluster) {
            double most = 0;
            for (int from = 0; from < task.gpus; ++from) {
                if (from == to) continue;
                const int sender = std::countr_zero(unsigned{before[at(from)]});
                most = std::max(most, task.traffic[at(boundary)](sender, cluster) *
                                          weight_of_pair(task, from, to));
            }
            prices(to, cluster) = most;
        }
}

constexpr std::int64_t kMostSteps = 400'000;
/// Rounds, each from the best so far, cooling from kHottest to kColdest of a boundary's mean value.
constexpr std::int64_t kMostRounds = 4;
/// Steps that a round needs for every swap there is.
constexpr std::int64_t kStepsPerSwap = 20;
constexpr double kHottest = 0.3;
constexpr double kColdest = 0.001;

class LabelSearch {
  public:
    LabelSearch(const LabelTask& task, Labels start)
        : task_(task),
          rng_(task.seed),
          equal_(equal_sizes(task)),
          memory_(memory_of_gpu(task)),
          totals_(at(task.gpus)),
          labels_(std::move(start)) {
        for (int layer = 0; layer < layers(); ++layer)
            for (int gpu = 0; gpu < task_.gpus; ++gpu) totals_[at(gpu)] += size(layer, gpu);
    }

    Labels run(const std::stop_token& stop) {
        Labels best = labels_;
        double least = heaviest_pairs(task_, best);
        const std::int64_t pairs = std::int64_t{task_.gpus} * task_.gpus;
        const std::int64_t all = std::min(kMostSteps, task_.work / (2 * pairs));
        const std::int64_t rounds =
            std::clamp<std::int64_t>(all / (kStepsPerSwap * layers() * pairs / 2), 1, kMostRounds);
        const std::int64_t steps = all / rounds;
        const double unit = least / static_cast<double>(task_.traffic.size());
        for (std::int64_t round = 0; round < rounds && !stop.stop_requested(); ++round) {
            for (std::int64_t step = 0; step < steps; ++step) {
                const double left = 1 - static_cast<double>(step) / static_cast<double>(steps);
                try_swap(unit * (kColdest + (kHottest - kColdest) * left * left * left));
            }
            for (std::int64_t step = 0; step < steps / 4; ++step) try_swap(0);
            const double value = heaviest_pairs(task_, labels_);
            if (value < least) {
                least = value;
                best = labels_;
            }
        }
        return best;
    }

  private:
    struct Swap {
        int first_layer, last_layer, a, b;
    };

    int layers() const { return static_cast<int>(labels_.size()); }
    int size(int layer, int gpu) const {
        return task_.sizes[at(layer)][at(labels_[at(layer)][at(gpu)])];
    }
    int below(int bound) { return static_cast<int>(rng_.below(static_cast<std::uint64_t>(bound))); }

    Swap random_swap() {
        const int layer = below(layers());
        const int a = below(task_.gpus);
        const int b = (a + 1 + below(task_.gpus - 1)) % task_.gpus;
        const int gpus_per_node = task_.gpus / task_.nodes;
        if (a / gpus_per_node != b / gpus_per_node) return {layer, layer, a, b};
        // Within a node a swap in a run of layers changes only the boundaries at its ends.
        const int lasts[] = {layer, layers() - 1, layer + below(layers() - layer)};
        return {layer, lasts[below(3)], a, b};
    }

    void apply(const Swap& swap) {
        for (int layer = swap.first_layer; layer <= swap.last_layer; ++layer) {
            const int more = size(layer, swap.a) - size(layer, swap.b);
            totals_[at(swap.a)] -= more;
            totals_[at(swap.b)] += more;
            std::swap(labels_[at(layer)][at(swap.a)], labels_[at(layer)][at(swap.b)]);
        }
    }

    bool fits(const Swap& swap) const {
        return equal_ || std::max(totals_[at(swap.a)], totals_[at(swap.b)]) <= memory_;
    }

    /// The heaviest pairs of the boundaries that the swap may change, summed.
    double value(const Swap& swap) const {
        double sum = 0;
        if (swap.first_layer > 0) sum += boundary(swap.first_layer - 1);
        if (swap.last_layer + 1 < layers()) sum += boundary(swap.last_layer);
        return sum;
    }
    double boundary(int layer) const {
        return heaviest_pair(task_, layer, labels_[at(layer)], labels_[at(layer + 1)]);
    }

    void try_swap(double temperature) {
        const Swap swap = random_swap();
        const double before = value(swap);
        // Drawn in any case: what is random does not depend on what is found.
        const double allowed = -portable_log(rng_.inside()) * temperature;
        apply(swap);
        if (!fits(swap) || value(swap) > before + allowed) apply(swap);
    }

    const LabelTask& task_;
    Rng rng_;
    bool equal_;
    int memory_;
    std::vector<int> totals_;  ///< experts over all layers, [gpu]
    Labels labels_;
};

}  // namespace

bool equal_sizes(const LabelTask& task) {
    for (const auto& sizes : task.sizes)
        if (std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) != sizes.end())
            return false;
    return true;
}

int memory_of_gpu(const LabelTask& task) {
    const std::vector<int> totals = totals_of(task, evenly_filled(task));
    const int all = std::accumulate(totals.begin(), totals.end(), 0);
    return std::max((all + task.gpus - 1) / task.gpus + 1,
                    *std::max_element(totals.begin(), totals.end()));
}

bool fits_memory(const LabelTask& task, const Labels& labels) {
    const std::vector<int> totals = totals_of(task, labels);
    return *std::max_element(totals.begin(), totals.end()) <= memory_of_gpu(task);
}

double heaviest_pair(const LabelTask& task, int boundary, const std::vector<int>& before,
                     const std::vector<int>& after) {
    const Matrix& traffic = task.traffic[at(boundary)];
    const int gpus_per_node = task.gpus / task.nodes;
    double most = 0;
    for (int from = 0; from < task.gpus; ++from) {
        const int first = from / gpus_per_node * gpus_per_node;
        for (int to = 0; to < task.gpus; ++to) {
            if (to == from) continue;
            const bool together = to >= first && to < first + gpus_per_node;
            most = std::max(
                most, traffic(before[at(from)], after[at(to)]) * (together ? 1 : kAcrossNodes));
        }
    }
    return most;
}

double heaviest_pairs(const LabelTask& task, const Labels& labels) {
    double sum = 0;
    for (std::size_t boundary = 0; boundary < task.traffic.size(); ++boundary)
        sum +=
            heaviest_pair(task, static_cast<int>(boundary), labels[boundary], labels[boundary + 1]);
    return sum;
}

bool matching_is_optimal(const LabelTask& task) {
    return task.nodes == 1 && equal_sizes(task);
}

Labels matched_labels(const LabelTask& task) {
    Labels labels(1, std::vector<int>(at(task.gpus)));
    std::iota(labels[0].begin(), labels[0].end(), 0);
    for (const Matrix& traffic : task.traffic) {
        const std::vector<int> matching = best_matching(traffic);
        std::vector<int> next;
        for (const int cluster : labels.back()) next.push_back(matching[at(cluster)]);
        labels.push_back(std::move(next));
    }
    return fits_memory(task, labels) ? labels : evenly_filled(task);
}

// The least, exactly: a layer's labels are a placement of as many clusters as GPUs, layers pay only
// with their neighbours, and over two nodes few of the 8! labels differ by more than names
// (exact_chain.cpp). The integer program proves nothing at this size.
LabelResult labels_by_chain(const LabelTask& task, const LabelLimits& limits) {
    const LayerPlacements all({task.gpus, task.gpus, task.nodes, false});
    ChainTask chain{.placements = &all, .cost = {}, .prices = {}, .stop = limits.stop};
    chain.cost.assign(task.sizes.size(), std::vector<double>(at(all.orbits()), 0.0));
    chain.prices = [&](int boundary, int placement, Matrix& prices) {
        fill_prices(task, boundary, all.sets_of(placement), prices);
    };
    chain.largest = true;
    chain.end = end_after(limits.seconds);
    const ChainResult best = best_chain(chain);
    LabelResult result{{}, !best.cut_short, best.cut_short};
    for (const auto& sets : best.sets) {
        auto& layer = result.labels.emplace_back();
        for (const ExpertSet set : sets) layer.push_back(std::countr_zero(unsigned{set}));
    }
    return result;
}

// Local search on what MoETuner's second program minimises: two GPUs trade
// their clusters, in one layer or in a run of layers. Annealed (Kirkpatrick 1983): a step that is
// worse by d is taken with probability exp(−d / temperature). The heaviest pair of a boundary
// seldom moves with one swap, so descent alone gets stuck.

Labels labels_by_search(const LabelTask& task, Labels start, const std::stop_token& stop) {
    if (task.gpus < 2 || task.traffic.empty()) return start;
    return LabelSearch(task, std::move(start)).run(stop);
}

}  // namespace moehub
