// What MoETuner's second program minimises (moetuner_labels.cpp), exactly: a layer's labels are a
// placement of as many clusters as GPUs, layers pay only with their neighbours, and over two nodes
// few of the 8! labels differ by more than names (exact_chain.cpp). The integer program proves
// nothing at this size.
#include "place/exact/exact_chain.hpp"
#include "place/moetuner/moetuner_labels.hpp"

#include <algorithm>
#include <bit>

namespace moehub {
namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// [gpu × cluster]: the heaviest that another GPU sends it, were the cluster there.
void fill_prices(const LabelTask& task, int boundary, const std::vector<ExpertSet>& before,
                 Matrix& prices) {
    const int gpus_per_node = task.gpus / task.nodes;
    for (int to = 0; to < task.gpus; ++to)
        for (int cluster = 0; cluster < task.gpus; ++cluster) {
            double most = 0;
            for (int from = 0; from < task.gpus; ++from) {
                if (from == to) continue;
                const int sender = std::countr_zero(unsigned{before[at(from)]});
                const bool together = from / gpus_per_node == to / gpus_per_node;
                most = std::max(most, task.traffic[at(boundary)](sender, cluster) *
                                          (together ? 1 : kAcrossNodes));
            }
            prices(to, cluster) = most;
        }
}

}  // namespace

LabelResult labels_by_chain(const LabelTask& task, const LabelLimits& limits) {
    using Clock = std::chrono::steady_clock;
    const LayerPlacements all({task.gpus, task.gpus, task.nodes, false});
    ChainTask chain{.placements = &all, .cost = {}, .prices = {}, .stop = limits.stop};
    chain.cost.assign(task.sizes.size(), std::vector<double>(at(all.orbits()), 0.0));
    chain.prices = [&](int boundary, int placement, Matrix& prices) {
        fill_prices(task, boundary, all.sets_of(placement), prices);
    };
    chain.largest = true;
    chain.end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(std::min(limits.seconds, 1e9)));
    const ChainResult best = best_chain(chain);
    LabelResult result{{}, !best.cut_short, best.cut_short};
    for (const auto& sets : best.sets) {
        auto& layer = result.labels.emplace_back();
        for (const ExpertSet set : sets) layer.push_back(std::countr_zero(unsigned{set}));
    }
    return result;
}

}  // namespace moehub
