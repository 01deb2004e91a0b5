// EPLB (github.com/deepseek-ai/EPLB), for every layer:
//   1. groups of experts to nodes, packed by their weight;
//   2. in a node, a further copy for the expert with the largest weight / copies, until the node's
//      slots are full;
//   3. the copies of a node to its GPUs, packed by weight / copies.
// Packing is longest processing time first with equal counts. When groups do not divide by nodes,
// all is one node. The published program computes in single precision, and where two loads are
// equal there but not in double precision it takes the first: so does this one.
#include "place/eplb.hpp"

#include "base/input_error.hpp"
#include "place/methods.hpp"

#include <numeric>
#include <queue>

namespace moehub {
namespace {

using Weights = std::vector<double>;

double per_copy(double weight, int copies) {
    return static_cast<float>(weight) / static_cast<float>(copies);
}

/// Experts in the order of nodes: node n has the n-th part. Without groups, experts in order.
std::vector<int> by_node(std::span<const double> weights, int groups, int nodes) {
    const auto size = weights.size() / static_cast<std::size_t>(groups);
    Weights of_group;
    for (std::size_t at = 0; at < weights.size(); at += size) {
        const auto group = weights.subspan(at, size);
        of_group.push_back(std::accumulate(group.begin(), group.end(), 0.0));
    }
    std::vector<int> order;
    for (const auto& pack : pack_evenly(of_group, nodes))
        for (const int group : pack)
            for (std::size_t at = 0; at < size; ++at)
                order.push_back(group * static_cast<int>(size) + static_cast<int>(at));
    return order;
}

/// Copies' experts in the order in which copies are made: each expert once, then further copies.
std::vector<int> in_order_of_making(std::span<const double> weights, int slots) {
    struct Wanted {
        double weight;
        int expert;
        bool operator<(const Wanted& other) const {
            return weight < other.weight || (weight == other.weight && expert > other.expert);
        }
    };
    std::vector<int> made(weights.size());
    std::iota(made.begin(), made.end(), 0);
    std::vector<int> copies(weights.size(), 1);
    std::priority_queue<Wanted> wanted;
    for (const int expert : made)
        wanted.push({per_copy(weights[static_cast<std::size_t>(expert)], 1), expert});
    while (made.size() < static_cast<std::size_t>(slots)) {
        const int expert = wanted.top().expert;
        wanted.pop();
        made.push_back(expert);
        const auto at = static_cast<std::size_t>(expert);
        wanted.push({per_copy(weights[at], ++copies[at]), expert});
    }
    return made;
}

/// Appends one node's slots; `experts` and `weights` are the node's.
void fill_node(std::span<const int> experts, const Weights& weights, const EplbSizes& sizes,
               std::vector<int>& expert_of) {
    const std::vector<int> made = in_order_of_making(weights, sizes.slots / sizes.nodes);
    std::vector<int> copies(weights.size(), 0);
    for (const int expert : made) ++copies[static_cast<std::size_t>(expert)];
    Weights of_copy;
    for (const int expert : made) {
        const auto at = static_cast<std::size_t>(expert);
        of_copy.push_back(per_copy(weights[at], copies[at]));
    }
    for (const auto& pack : pack_evenly(of_copy, sizes.gpus / sizes.nodes))
        for (const int copy : pack) expert_of.push_back(experts[at(made[at(copy)])]);
}

std::vector<int> slots_of_layer(std::span<const double> weights, const EplbSizes& sizes) {
    const std::vector<int> order = by_node(weights, sizes.groups, sizes.nodes);
    const auto share = order.size() / static_cast<std::size_t>(sizes.nodes);
    std::vector<int> expert_of;
    for (std::size_t at = 0; at < order.size(); at += share) {
        const std::span<const int> experts(order.data() + at, share);
        Weights own;
        for (const int expert : experts) own.push_back(weights[static_cast<std::size_t>(expert)]);
        fill_node(experts, own, sizes, expert_of);
    }
    return expert_of;
}

int twins_in(const ExpertLayout& layout) {
    int twins = 0;
    for (const auto& on : layout.on)
        for (auto experts : on) {
            std::sort(experts.begin(), experts.end());
            for (std::size_t at = 1; at < experts.size(); ++at)
                twins += experts[at] == experts[at - 1];
        }
    return twins;
}

}  // namespace

std::vector<std::vector<int>> pack_evenly(std::span<const double> weights, int packs) {
    std::vector<std::vector<int>> packed(at(packs));
    std::vector<int> order(weights.size());
    std::iota(order.begin(), order.end(), 0);
    const std::size_t room = weights.size() / packed.size();
    // With one item each there is nothing to balance, and the published program keeps the order.
    if (room > 1)
        std::stable_sort(order.begin(), order.end(), [weights](int a, int b) {
            return static_cast<float>(weights[at(a)]) > static_cast<float>(weights[at(b)]);
        });
    std::vector<float> load(packed.size(), 0);
    for (const int item : order) {
        std::size_t best = packed.size();
        for (std::size_t pack = 0; pack < packed.size(); ++pack)
            if (packed[pack].size() < room && (best == packed.size() || load[pack] < load[best]))
                best = pack;
        packed[best].push_back(item);
        load[best] += static_cast<float>(weights[at(item)]);
    }
    return packed;
}

std::vector<int> copies_of(std::span<const double> weights, int slots) {
    std::vector<int> copies(weights.size(), 0);
    for (const int expert : in_order_of_making(weights, slots)) ++copies[at(expert)];
    return copies;
}

EplbResult eplb(const Matrix& weights, const EplbSizes& sizes) {
    EplbSizes used = sizes;
    if (sizes.groups % sizes.nodes != 0) used.groups = used.nodes = 1;
    EplbResult result;
    for (int layer = 0; layer < weights.rows; ++layer) {
        const std::span<const double> row = weights.row(layer);
        result.expert_of.push_back(slots_of_layer(row, used));
        auto& copies = result.copies.emplace_back(row.size(), 0);
        for (const int expert : result.expert_of.back()) ++copies[at(expert)];
    }
    return result;
}

Solution solve_eplb(const PlaceInput& input, const PlaceOptions&) {
    const Matrix weights = together(input.profiles);
    const int slots = weights.columns + input.redundant;
    if (input.groups < 1 || weights.columns % input.groups != 0)
        throw input_error("eplb: found {} groups, allowed: a divisor of the {} experts",
                          input.groups, weights.columns);
    if (slots % input.gpus != 0)
        throw input_error("eplb: found {} slots, allowed: a multiple of the {} GPUs", slots,
                          input.gpus);
    const EplbResult result = eplb(weights, {slots, input.groups, input.nodes, input.gpus});
    Solution solution{empty_layout(shape_of(input.profiles.front()), input.gpus), {}, false, {}};
    for (std::size_t layer = 0; layer < result.expert_of.size(); ++layer)
        for (std::size_t slot = 0; slot < result.expert_of[layer].size(); ++slot)
            solution.layout.on[layer][slot / at(slots / input.gpus)].push_back(
                result.expert_of[layer][slot]);
    if (input.nodes > 1 && input.groups % input.nodes != 0)
        solution.notes.push_back(
            fmt::format("eplb: {} groups do not divide by {} nodes; nodes were not looked at",
                        input.groups, input.nodes));
    if (const int twins = twins_in(solution.layout))
        solution.notes.push_back(
            fmt::format("eplb: {} slots hold an expert that their GPU has already", twins));
    return solution;
}

}  // namespace moehub
