// The best layout there is, where the placements of a layer can be counted: a layer pays by itself
// (exact_placements.cpp) and with its neighbours (here), and the best chain of layers is found by
// dynamic programming (exact_chain.cpp).
//
// With W[e,f] the share of transitions from expert e to f, times its weight, an expert f on GPU h
// pays Σ W[e,f] over all e that are not on h; the same for nodes.
#include "place/exact/exact.hpp"

#include "base/input_error.hpp"
#include "place/methods.hpp"

#include <bit>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// Most placements of a layer; 8 experts on 8 GPUs have 40,320.
constexpr double kMostPlacements = 40'320;

void refuse_what_is_not_possible(const PlaceInput& input, const PlaceOptions& options,
                                 const Objective& objective) {
    const int experts = input.profiles.front().experts;
    if (input.redundant > 0) throw InputError("exact: found --replicas, allowed: none");
    if (options.max_moves) throw InputError("exact: found --max-moves, allowed: none");
    if (options.worst_profile)
        throw InputError("exact: found --worst-profile, allowed: the profiles' weighted mean");
    if (objective.pair > 0)
        throw InputError(
            "exact: objective: found pair, allowed: load, gpus, nodes, transitions, "
            "node-transitions, activated, moved");
    if (count_placements(experts, input.gpus) > kMostPlacements)
        throw input_error(
            "exact: found {} experts on {} GPUs, allowed: at most 40,320 placements a layer (8 "
            "experts on 4 GPUs have 2,520)",
            experts, input.gpus);
}

/// Transitions of each boundary, all profiles together, as shares times the objective's weight.
std::vector<Matrix> priced_transitions(const PlaceInput& input,
                                       const std::vector<ChoiceTotals>& totals) {
    const double weights = total_weight(input.profiles);
    std::vector<Matrix> sum;
    for (std::size_t number = 0; number < input.profiles.size(); ++number) {
        const Profile& profile = input.profiles[number];
        if (totals[number].transitions <= 0) continue;
        const std::vector<Matrix> own = transitions(profile);
        if (sum.empty()) sum.assign(own.size(), Matrix(profile.experts, profile.experts));
        const double share = profile.weight / weights / totals[number].transitions;
        for (std::size_t boundary = 0; boundary < own.size(); ++boundary)
            for (std::size_t entry = 0; entry < own[boundary].at_.size(); ++entry)
                sum[boundary].at_[entry] += own[boundary].at_[entry] * share;
    }
    return sum;
}

/// What each expert of the later layer costs on each GPU, [gpu × expert], given the placement of
/// the layer before.
Matrix expert_prices(const LayerPlacements& all, const Objective& objective, const Matrix& share,
                     int placement) {
    const std::vector<ExpertSet> sets = all.sets_of(placement);
    Matrix own(all.shape().gpus, all.shape().experts);
    for (int gpu = 0; gpu < own.rows; ++gpu) {
        const int first = gpu / all.gpus_per_node() * all.gpus_per_node();
        unsigned on_node = 0;
        for (int i = first; i < first + all.gpus_per_node(); ++i) on_node |= sets[at(i)];
        for (int from = 0; from < share.rows; ++from) {
            const double weight = (sets[at(gpu)] >> from & 1U ? 0 : objective.transitions) +
                                  (on_node >> from & 1U ? 0 : objective.node_transitions);
            for (int to = 0; to < share.columns; ++to) own(gpu, to) += weight * share(from, to);
        }
    }
    return own;
}

/// Fills in what every set costs on every GPU, from its experts' prices.
void fill_set_prices(const LayerPlacements& all, const Matrix& own, Matrix& prices) {
    const auto price = [&own](int gpu, int expert) {
        return expert < own.columns ? own(gpu, expert) : 0;
    };
    // Eight experts at a time: two looks for a set of up to 16.
    std::vector<double> low(256), high(256);
    for (int gpu = 0; gpu < own.rows; ++gpu) {
        for (unsigned set = 1; set < 256; ++set) {
            const int lowest = std::countr_zero(set);
            low[set] = low[set & (set - 1)] + price(gpu, lowest);
            high[set] = high[set & (set - 1)] + price(gpu, lowest + 8);
        }
        for (int number = 0; number < prices.columns; ++number) {
            const ExpertSet set = all.sets()[at(number)];
            prices(gpu, number) = low[set & 255] + high[set >> 8];
        }
    }
}

ExpertLayout layout_of(const PlaceInput& input, const ChainResult& chain) {
    ExpertLayout layout = empty_layout(shape_of(input.profiles.front()), input.gpus);
    for (std::size_t layer = 0; layer < chain.sets.size(); ++layer)
        for (std::size_t gpu = 0; gpu < chain.sets[layer].size(); ++gpu)
            for (int expert = 0; expert < layout.experts; ++expert)
                if (chain.sets[layer][gpu] >> expert & 1U) layout.on[layer][gpu].push_back(expert);
    return layout;
}

std::vector<std::string> notes_of(const LayerCosts& costs, const PlaceOptions& options,
                                  const Profile& profile) {
    std::vector<int> layers;
    double highest = 0;
    for (std::size_t layer = 0; layer < costs.raised_cap.size(); ++layer) {
        if (costs.raised_cap[layer] <= 0) continue;
        layers.push_back(number_of(profile, static_cast<int>(layer)));
        highest = std::max(highest, costs.raised_cap[layer]);
    }
    if (layers.empty()) return {};
    return {
        fmt::format("no placement keeps the load cap {} in {} {}: there the lowest load that one "
                    "reaches is the cap (at most {:.3f})",
                    options.load_cap, layers.size() == 1 ? "layer" : "layers",
                    fmt::join(layers, ", "), highest)};
}

}  // namespace

Solution solve_exact(const PlaceInput& input, const PlaceOptions& options) {
    const auto end = end_after(options.time_limit);
    const Objective objective = options.objective.value_or(usual_objective(input));
    refuse_what_is_not_possible(input, options, objective);
    if (input.gpus == 1) {  // there is one layout only
        Solution solution{contiguous_layout(shape_of(input.profiles.front()), 1), {}, false, {}};
        solution.bound = mean_value(input, values_of(input, options, solution.layout));
        return solution;
    }
    const bool named = options.current && objective.moved > 0;
    const LayerPlacements all({input.profiles.front().experts, input.gpus, input.nodes, named});
    std::vector<ChoiceTotals> totals;
    for (const Profile& profile : input.profiles) totals.push_back(choice_totals(profile));
    const LayerCosts costs = layer_costs({&input, &options, objective, &all}, totals);

    ChainTask task{
        .placements = &all, .cost = costs.cost, .prices = {}, .stop = options.stop, .end = end};
    std::vector<Matrix> shares;
    if (objective.transitions > 0 || objective.node_transitions > 0)
        shares = priced_transitions(input, totals);
    if (!shares.empty())
        task.prices = [&](int boundary, int placement, Matrix& table) {
            fill_set_prices(all, expert_prices(all, objective, shares[at(boundary)], placement),
                            table);
        };
    task.threads = options.threads > 0 ? options.threads
                                       : static_cast<int>(std::thread::hardware_concurrency());
    if (options.progress) task.progress = [&](double share) { options.progress(share, 0); };
    const ChainResult chain = best_chain(task);
    // Evaluations add up in another order; a bound must not be above the value it bounds.
    constexpr double kRounding = 1e-12;
    Solution solution{layout_of(input, chain), chain.value * (1 - kRounding), chain.cut_short,
                      notes_of(costs, options, input.profiles.front())};
    if (chain.cut_short) {
        solution.bound.reset();
        solution.notes.push_back("exact: the time was over before all was compared: not proven");
    }
    return solution;
}

}  // namespace moehub
