// Graph partitioning as a peer: in every layer a graph of experts, an edge weighing how many tokens
// chose both, cut into one part per GPU by METIS (Karypis, Kumar 1998; with two balance
// constraints, the number of experts and their load). A token that finds its experts in one part
// goes to one GPU. METIS keeps sizes only nearly equal; what is left is mended (partition.hpp).
// Then GPUs are relabelled along the layers (assignment.hpp).
#include "base/input_error.hpp"
#include "base/utf8.hpp"
#include "place/assignment.hpp"
#include "place/eplb.hpp"
#include "place/methods.hpp"
#include "place/partition.hpp"

#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include <metis.h>

namespace moehub {
namespace {

/// The load cap; without one a cap that no layout reaches.
double cap_of(const PlaceOptions& options) {
    constexpr double kNoCap = 1e6;
    return options.load_cap > 0 ? options.load_cap : kNoCap;
}

constexpr std::size_t kMostForBoth = 64;

/// Tokens that chose both experts in the layer, [expert × expert], symmetric, 0 on the diagonal.
Matrix chosen_together(const Profile& profile, int layer) {
    Matrix both(profile.experts, profile.experts);
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        for (const std::uint16_t a : experts_of(profile, layer, token))
            for (const std::uint16_t b : experts_of(profile, layer, token))
                if (a != b) both(a, b) += 1;
    return both;
}

/// What ties experts: the weighted mean over the profiles, each scaled to the same sum.
Matrix ties_of(const std::vector<Profile>& profiles, int layer) {
    if (profiles.size() == 1) return chosen_together(profiles.front(), layer);
    Matrix ties(profiles.front().experts, profiles.front().experts);
    for (const Profile& profile : profiles)
        add_scaled(ties, chosen_together(profile, layer), profile.weight);
    return ties;
}

/// Whole numbers for METIS, whose sums must fit in 31 bits.
std::vector<idx_t> whole(std::span<const double> values, double sum_of_all) {
    const double sum = sum_of(values);
    std::vector<idx_t> numbers;
    for (const double value : values)
        numbers.push_back(sum > 0 ? static_cast<idx_t>(std::floor(value / sum * sum_of_all)) : 0);
    return numbers;
}

struct Graph {
    std::vector<idx_t> first_edge{0}, neighbour, edge_weight, weights;
};

Graph graph_of(const Matrix& ties, std::span<const double> load) {
    constexpr double kEdges = 1 << 28, kLoad = 1 << 20;
    Graph graph;
    const std::vector<idx_t> edges = whole(ties.at_, kEdges), loads = whole(load, kLoad);
    for (std::size_t a = 0; a < load.size(); ++a) {
        for (std::size_t b = 0; b < load.size(); ++b) {
            const idx_t weight = edges[a * load.size() + b];
            if (weight == 0) continue;
            graph.neighbour.push_back(static_cast<idx_t>(b));
            graph.edge_weight.push_back(weight);
        }
        graph.first_edge.push_back(static_cast<idx_t>(graph.neighbour.size()));
        graph.weights.push_back(1);
        // METIS divides by the sum: it must not be 0.
        graph.weights.push_back(loads[a] + 1);
    }
    return graph;
}

using Partitioner = decltype(&METIS_PartGraphKway);

/// Cuts the graph; false when METIS gives up.
bool cut_by_metis(Partitioner method, Partition& partition, Graph graph,
                  const PlaceOptions& options) {
    // METIS draws from rand(), which it seeds at the start: one at a time, or results differ.
    static std::mutex alone;
    const std::lock_guard lock(alone);
    idx_t settings[METIS_NOPTIONS];
    METIS_SetDefaultOptions(settings);
    settings[METIS_OPTION_SEED] = static_cast<idx_t>(options.seed % (1u << 30));
    auto experts = static_cast<idx_t>(partition.part_of.size());
    idx_t constraints = 2, parts = partition.parts, cut = 0;
    real_t allowed[2] = {1.001f, static_cast<real_t>(std::max(cap_of(options), 1.001))};
    std::vector<idx_t> part_of(partition.part_of.size(), 0);
    const int status =
        method(&experts, &constraints, graph.first_edge.data(), graph.neighbour.data(),
               graph.weights.data(), nullptr, graph.edge_weight.data(), &parts, nullptr, allowed,
               settings, &cut, part_of.data());
    std::copy(part_of.begin(), part_of.end(), partition.part_of.begin());
    return status == METIS_OK;
}

Partition packed(std::span<const double> load, int parts) {
    Partition partition{parts, std::vector<int>(load.size(), 0)};
    const auto packs = pack_evenly(load, parts);
    for (std::size_t part = 0; part < packs.size(); ++part)
        for (const int expert : packs[part]) partition.part_of[at(expert)] = static_cast<int>(part);
    return partition;
}

/// The better of METIS's two methods, mended: within the load cap, then with the lesser cut.
Partition partition_of(const Matrix& ties, std::span<const double> load, int parts,
                       const PlaceOptions& options) {
    const Partition fallback = packed(load, parts);
    const Graph graph = graph_of(ties, load);
    // METIS fails on graphs without edges and on parts of one; neither leaves anything to cut.
    if (parts == 1 || static_cast<int>(load.size()) == parts || graph.neighbour.empty())
        return fallback;
    // k-way takes five times as long as recursive bisection, for cuts that are as good.
    std::vector<Partitioner> methods = {&METIS_PartGraphRecursive};
    if (load.size() <= kMostForBoth) methods.push_back(&METIS_PartGraphKway);
    Partition best = fallback;
    std::pair<bool, double> least{true, std::numeric_limits<double>::infinity()};
    for (const Partitioner method : methods) {
        Partition found = fallback;
        if (!cut_by_metis(method, found, graph, options)) continue;
        make_equal(found, ties);
        const bool over = !keep_load_below(found, ties, load, cap_of(options));
        const std::pair<bool, double> cost{over, found.cut(ties)};
        if (cost >= least) continue;
        best = std::move(found);
        least = cost;
    }
    return best;
}

void check(const PlaceInput& input) {
    if (input.redundant > 0) throw InputError("metis: found --replicas, allowed: none");
    for (const Profile& profile : input.profiles) {
        if (!profile.has_tokens())
            throw input_error(
                "metis: {}: found counts alone, allowed: profiles with every token's experts",
                printable(profile.name));
        if (profile.experts % input.gpus != 0)
            throw input_error("metis: found {} experts, allowed: a multiple of the {} GPUs",
                              profile.experts, input.gpus);
    }
}

}  // namespace

Solution solve_metis(const PlaceInput& input, const PlaceOptions& options) {
    check(input);
    const Matrix counts = together(input.profiles);
    const auto experts = at(counts.columns);
    Solution solution{empty_layout(shape_of(input.profiles.front()), input.gpus), {}, false, {}};
    const auto end = end_after(options.time_limit);
    for (int layer = 0; layer < counts.rows; ++layer) {
        const std::span<const double> load = counts.row(layer);
        solution.cut_short = solution.cut_short || options.stop.stop_requested() ||
                             std::chrono::steady_clock::now() > end;
        const Partition partition =
            solution.cut_short
                ? packed(load, input.gpus)
                : partition_of(ties_of(input.profiles, layer), load, input.gpus, options);
        auto& on = solution.layout.on[at(layer)];
        for (std::size_t expert = 0; expert < experts; ++expert)
            on[at(partition.part_of[expert])].push_back(static_cast<int>(expert));
    }
    if (solution.cut_short)
        solution.notes.emplace_back("metis: out of time; the last layers are packed by load alone");
    align(solution.layout, transitions(input.profiles));
    return solution;
}

}  // namespace moehub
