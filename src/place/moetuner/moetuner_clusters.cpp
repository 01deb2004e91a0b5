// MoETuner (arXiv 2502.06643), first program, of one layer:
//   min Σ_c |T_c − mean|,  T_c = Σ_e load_e · x[c,e],  x[c,e] ∈ {0, 1},
// every expert in one cluster, no cluster empty, all of one size unless asked otherwise. The paper
// forgets to print the first condition. |T_c − mean| becomes d_c ≥ ±(T_c − mean).
#include "place/moetuner/moetuner_clusters.hpp"

#include "place/moetuner/ilp.hpp"
#include "place/moetuner/moetuner_packing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace moehub {
namespace {

/// The paper's, of the value.
constexpr double kTolerance = 0.025;
/// Of the mean, per cluster: nobody measures a difference of a thousandth. Where the best is near
/// 0, the paper's tolerance alone never ends.
constexpr double kEvenEnough = 0.001;
/// Clusters times experts. At this size CBC improved no start in 2,000 nodes, which took seconds.
constexpr int kMostSwitches = 1024;
/// What the first relaxation costs, in nodes.
constexpr int kRootNodes = 5;
constexpr int kMostNodes = 100'000;

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

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
                                            .relative_gap = kTolerance,
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

    /// The same clusters, numbered by their heaviest expert.
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
