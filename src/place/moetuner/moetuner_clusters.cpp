// MoETuner (arXiv 2502.06643), first program, of one layer:
//   min Σ_c |T_c − mean|,  T_c = Σ_e load_e · x[c,e],  x[c,e] ∈ {0, 1},
// every expert in one cluster, no cluster empty, all of one size unless asked otherwise. The paper
// forgets to print the first condition. |T_c − mean| becomes d_c ≥ ±(T_c − mean).
#include "place/moetuner/ilp.hpp"
#include "place/moetuner/moetuner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace moehub {
namespace {

/// Loads in units of a cluster's mean; experts by load, heaviest first.
struct ScaledLoads {
    std::vector<double> load;
    std::vector<int> order;
};

/// Which cluster each expert is in, with the sums that searches need.
struct Packing {
    std::vector<int> cluster;  ///< cluster of each expert
    std::vector<double> load;  ///< load of each cluster
    std::vector<int> size;     ///< experts of each cluster
};

Packing longest_first(const BalanceTask& task, const ScaledLoads& loads) {
    Packing packing{std::vector<int>(task.load.size()), std::vector<double>(at(task.clusters)),
                    std::vector<int>(at(task.clusters))};
    const int room = task.unequal ? std::numeric_limits<int>::max()
                                  : static_cast<int>(task.load.size()) / task.clusters;
    for (const int expert : loads.order) {
        int best = -1;
        for (int c = 0; c < task.clusters; ++c) {
            if (packing.size[at(c)] >= room) continue;
            // Where loads are equal the smaller cluster: experts that nobody chose leave none
            // empty.
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
    double change = -1e-12;  // smaller changes are rounding
    int expert = -1;
    int other = -1;  ///< expert that it changes places with; −1: none
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

/// How uneven a packing is: Σ |load of a cluster − 1|.
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

/// Longest processing time first (Graham 1969), each to the lightest cluster with room; then swaps
/// (and moves, where sizes may differ) while they help.
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

/// Unevenness per cluster, a share of the mean, that is good enough: nobody measures it. Where the
/// best is near 0, the paper's tolerance alone never ends.
constexpr double kEvenEnough = 0.001;
/// Most clusters times experts; here CBC improved no start in 2,000 nodes, which took seconds.
constexpr int kMostSwitches = 1024;
/// What the first relaxation costs, in nodes.
constexpr int kRootNodes = 5;
constexpr int kMostNodes = 100'000;

BalancedClusters clusters_of(const Packing& packing) {
    BalancedClusters result;
    result.experts.resize(packing.load.size());
    for (std::size_t expert = 0; expert < packing.cluster.size(); ++expert)
        result.experts[at(packing.cluster[expert])].push_back(static_cast<int>(expert));
    result.uneven = uneven(packing);
    result.proven = result.uneven <= kEvenEnough * static_cast<double>(packing.load.size());
    return result;
}

/// The program of one layer; column c · experts + e is x[c,e], then come the d_c.
class BalanceProgram {
  public:
    BalanceProgram(const BalanceTask& task, const ScaledLoads& loads)
        : task_(task), loads_(loads), experts_(static_cast<int>(task.load.size())) {
        for (int c = 0; c < task_.clusters; ++c)
            for (int e = 0; e < experts_; ++e) program_.add_switch(0);
        for (int c = 0; c < task_.clusters; ++c) add_cluster(c);
        for (int e = 0; e < experts_; ++e) {
            std::vector<IntegerProgram::Term> terms;
            for (int c = 0; c < task_.clusters; ++c) terms.push_back({x(c, e), 1});
            program_.add_equal(1, std::move(terms));
        }
        // Clusters have no names: number them by their heaviest expert. Then the i-th heaviest
        // expert is in one of the first i + 1.
        for (int rank = 0; rank < std::min(task_.clusters, experts_); ++rank)
            for (int c = rank + 1; c < task_.clusters; ++c)
                program_.fix(x(c, loads_.order[at(rank)]), 0);
    }

    Packing solve(Packing start, BalancedClusters& result) const {
        const IntegerProgram::Limits limits{.nodes = nodes(),
                                            .seconds = task_.seconds,
                                            .relative_gap = kPaperTolerance,
                                            .absolute_gap = kEvenEnough * task_.clusters,
                                            .stop = task_.stop};
        const auto found = program_.solve(limits, columns_of(start));
        result.proven = found.proven;
        result.cut_short = found.cut_short;
        result.work = (found.nodes + kRootNodes) * switches();
        for (int c = 0; c < task_.clusters; ++c)
            for (int e = 0; e < experts_; ++e)
                if (found.values[at(x(c, e))] > 0.5 && start.cluster[at(e)] != c)
                    move(start, loads_, e, c);
        return start;
    }

  private:
    int x(int cluster, int expert) const { return cluster * experts_ + expert; }
    std::int64_t switches() const { return std::int64_t{task_.clusters} * experts_; }
    int nodes() const {
        return static_cast<int>(
            std::clamp<std::int64_t>(task_.work / switches() - kRootNodes, 0, kMostNodes));
    }

    void add_cluster(int c) {
        constexpr double kAny = std::numeric_limits<double>::infinity();
        const int off = program_.add_number(0, kAny, 1);
        std::vector<IntegerProgram::Term> over, under, size;
        for (int e = 0; e < experts_; ++e) {
            over.push_back({x(c, e), loads_.load[at(e)]});
            size.push_back({x(c, e), 1});
        }
        under = over;
        over.push_back({off, -1});
        under.push_back({off, 1});
        program_.add_row(-kAny, 1, std::move(over));
        program_.add_row(1, kAny, std::move(under));
        const int each = experts_ / task_.clusters;
        program_.add_row(task_.unequal ? 1 : each, task_.unequal ? kAny : each, std::move(size));
    }

    /// The columns of a start, whose clusters are then numbered by their heaviest expert.
    std::vector<double> columns_of(Packing& start) const {
        std::vector<int> number(at(task_.clusters), -1);
        int next = 0;
        for (const int expert : loads_.order)
            if (int& own = number[at(start.cluster[at(expert)])]; own < 0) own = next++;
        Packing named = start;
        for (int& cluster : named.cluster) cluster = number[at(cluster)];
        for (int c = 0; c < task_.clusters; ++c) {
            named.load[at(number[at(c)])] = start.load[at(c)];
            named.size[at(number[at(c)])] = start.size[at(c)];
        }
        start = named;
        std::vector<double> values(at(program_.columns()));
        for (int e = 0; e < experts_; ++e) values[at(x(start.cluster[at(e)], e))] = 1;
        for (int c = 0; c < task_.clusters; ++c)
            values[at(task_.clusters * experts_ + c)] = std::abs(start.load[at(c)] - 1);
        return values;
    }

    const BalanceTask& task_;
    const ScaledLoads& loads_;
    int experts_;
    IntegerProgram program_;
};

}  // namespace

BalancedClusters balanced_clusters(const BalanceTask& task) {
    const ScaledLoads loads = scaled_loads(task);
    Packing packing = pack_by_swaps(task, loads);
    BalancedClusters result = clusters_of(packing);
    if (result.proven) return result;
    if (task.clusters * static_cast<int>(task.load.size()) > kMostSwitches) {
        result.too_large = true;
        return result;
    }
    BalancedClusters solved;
    packing = BalanceProgram(task, loads).solve(std::move(packing), solved);
    result = clusters_of(packing);
    result.proven = solved.proven;
    result.cut_short = solved.cut_short;
    result.work = solved.work;
    return result;
}

}  // namespace moehub
