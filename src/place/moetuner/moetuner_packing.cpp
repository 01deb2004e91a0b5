// Longest processing time first (Graham 1969), then the best swap of two experts again and again.
#include "place/moetuner/moetuner_packing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace moehub {
namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

Packing longest_first(const BalanceTask& task, const ScaledLoads& loads) {
    Packing packing{std::vector<int>(task.load.size()), std::vector<double>(at(task.clusters)),
                    std::vector<int>(at(task.clusters))};
    const int room = task.unequal ? std::numeric_limits<int>::max()
                                  : static_cast<int>(task.load.size()) / task.clusters;
    for (const int expert : loads.order) {
        int best = -1;
        for (int c = 0; c < task.clusters; ++c) {
            if (packing.size[at(c)] >= room) continue;
            // Of equal loads the smaller cluster: experts that nobody chose leave none empty.
            if (best < 0 || std::pair(packing.load[at(c)], packing.size[at(c)]) <
                                std::pair(packing.load[at(best)], packing.size[at(best)]))
                best = c;
        }
        packing.cluster[at(expert)] = best;
        packing.load[at(best)] += loads.load[at(expert)];
        packing.size[at(best)] += 1;
    }
    return packing;
}

/// What moving `amount` of load from one cluster to another changes.
double change(const Packing& packing, int from, int to, double amount) {
    const auto off = [](double load) { return std::abs(load - 1); };
    const double a = packing.load[at(from)];
    const double b = packing.load[at(to)];
    return off(a - amount) + off(b + amount) - off(a) - off(b);
}

struct Step {
    double change = -1e-12;  // smaller ones are rounding
    int expert = -1;
    int other = -1;  ///< −1: to a cluster alone
    int to = -1;
};

Step best_step(const BalanceTask& task, const ScaledLoads& loads, const Packing& packing) {
    Step best;
    const int experts = static_cast<int>(task.load.size());
    for (int expert = 0; expert < experts; ++expert) {
        const int from = packing.cluster[at(expert)];
        for (int other = expert + 1; other < experts; ++other) {
            const int to = packing.cluster[at(other)];
            if (to == from) continue;
            const double amount = loads.load[at(expert)] - loads.load[at(other)];
            const double gain = change(packing, from, to, amount);
            if (gain < best.change) best = {gain, expert, other, to};
        }
        if (!task.unequal || packing.size[at(from)] < 2) continue;
        for (int to = 0; to < task.clusters; ++to) {
            if (to == from) continue;
            const double gain = change(packing, from, to, loads.load[at(expert)]);
            if (gain < best.change) best = {gain, expert, -1, to};
        }
    }
    return best;
}

}  // namespace

ScaledLoads scaled_loads(const BalanceTask& task) {
    ScaledLoads result;
    const double sum = std::accumulate(task.load.begin(), task.load.end(), 0.0);
    for (const double load : task.load)
        result.load.push_back(sum > 0 ? load / sum * task.clusters : 0);
    result.order.resize(task.load.size());
    std::iota(result.order.begin(), result.order.end(), 0);
    std::stable_sort(result.order.begin(), result.order.end(),
                     [&](int a, int b) { return result.load[at(a)] > result.load[at(b)]; });
    return result;
}

double uneven(const Packing& packing) {
    double sum = 0;
    for (const double load : packing.load) sum += std::abs(load - 1);
    return sum;
}

void move(Packing& packing, const ScaledLoads& loads, int expert, int to) {
    const int from = packing.cluster[at(expert)];
    packing.cluster[at(expert)] = to;
    packing.load[at(from)] -= loads.load[at(expert)];
    packing.load[at(to)] += loads.load[at(expert)];
    packing.size[at(from)] -= 1;
    packing.size[at(to)] += 1;
}

Packing pack_by_swaps(const BalanceTask& task, const ScaledLoads& loads) {
    Packing packing = longest_first(task, loads);
    // Every step looks at all pairs: fewer steps where there are many.
    const auto experts = static_cast<double>(task.load.size());
    const int most_steps = static_cast<int>(std::min(1000.0, 2e8 / experts / experts));
    for (int steps = 0; steps < most_steps; ++steps) {
        const Step step = best_step(task, loads, packing);
        if (step.expert < 0) break;
        const int from = packing.cluster[at(step.expert)];
        move(packing, loads, step.expert, step.to);
        if (step.other >= 0) move(packing, loads, step.other, from);
    }
    return packing;
}

}  // namespace moehub
