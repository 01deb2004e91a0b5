// Local search on what MoETuner's second program minimises (moetuner_labels.cpp): two GPUs trade
// their clusters, in one layer or in a run of layers. Annealed (Kirkpatrick 1983): a step that is
// worse by d is taken with probability exp(−d / temperature). The heaviest pair of a boundary
// seldom moves with one swap, so descent alone gets stuck.
#include "base/portable_math.hpp"
#include "base/rng.hpp"
#include "place/moetuner/moetuner_labels.hpp"

#include <algorithm>
#include <utility>

namespace moehub {
namespace {

constexpr std::int64_t kMostSteps = 400'000;
/// Each from the best so far, cooling down from kHottest to kColdest of a boundary's mean value.
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

    /// Of the boundaries that the swap may change.
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

Labels labels_by_search(const LabelTask& task, Labels start, const std::stop_token& stop) {
    if (task.gpus < 2 || task.traffic.empty()) return start;
    return LabelSearch(task, std::move(start)).run(stop);
}

}  // namespace moehub
