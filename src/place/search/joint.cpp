// The joint method: all that the objective names at once. Where a layer's placements can be gone
// through, the exact method; otherwise copies by weight, a start by longest processing time under
// the caps, and the search of stages.cpp.
#include "base/portable_math.hpp"
#include "place/assignment.hpp"
#include "place/counts.hpp"
#include "place/exact/exact_placements.hpp"
#include "place/methods.hpp"
#include "place/search/joint_problem.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace moehub {
namespace {

/// The objective as each profile sees it.
std::vector<double> values_of(const PlaceInput& input, const PlaceOptions& options,
                              const ExpertLayout& layout) {
    const EvaluateOptions how{input.nodes, options.batch,
                              options.current ? &*options.current : nullptr};
    const Profile& first = input.profiles.front();
    const std::int64_t slots = std::int64_t{first.layers} * (first.experts + input.redundant);
    std::vector<double> values;
    for (const Profile& profile : input.profiles)
        values.push_back(value_of(*options.objective, evaluate(profile, layout, how), slots));
    return values;
}

/// By how far caps are broken in the worst layer of any profile, then by the objective. Copies that
/// meet on one GPU serve EPLB now and then, and the search avoids them.
Solution better_of(Solution found, Solution other, const PlaceInput& input,
                   const PlaceOptions& options) {
    const auto cost = [&](const ExpertLayout& layout) {
        double broken = 0;
        for (const Profile& profile : input.profiles)
            broken = std::max(
                broken,
                evaluate(profile, layout, {input.nodes, options.batch, nullptr}).load_worst_layer -
                    options.load_cap);
        constexpr double kRounding =
            1e-6;  // what the search keeps may lie a rounding above the cap
        if (options.load_cap <= 0 || broken < kRounding) broken = 0;
        const std::vector<double> values = values_of(input, options, layout);
        return std::pair(broken, std::accumulate(values.begin(), values.end(), 0.0));
    };
    if (options.max_moves || cost(found.layout) <= cost(other.layout)) return found;
    other.cut_short = found.cut_short;
    return other;
}

Solution solve_once(const PlaceInput& input, const PlaceOptions& options, const Budget& budget) {
    const JointProblem problem(input, options, budget);
    const ItemGpus item_gpus = search_stages(problem, input, options, budget);
    return {problem.layout(item_gpus), {}, budget.was_over(), problem.notes()};
}

/// The worst profile instead of the mean: several searches, each with more weight on what the last
/// one left behind (multiplicative weights); the best by its worst profile.
Solution solve_for_worst(PlaceInput input, PlaceOptions options) {
    constexpr int kRounds = 4;
    constexpr double kStep = 8;  // of the exponent, per share that a profile is above the mean
    options.time_limit /= kRounds;
    Solution best;
    double least = std::numeric_limits<double>::infinity();
    for (int round = 0; round < kRounds; ++round) {
        const Budget budget(options.time_limit, options.stop);
        Solution found = solve_once(input, options, budget);
        const std::vector<double> values = values_of(input, options, found.layout);
        const double worst = *std::max_element(values.begin(), values.end());
        const double mean =
            std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
        for (std::size_t at = 0; at < values.size() && mean > 0; ++at)
            input.profiles[at].weight *= portable_exp(kStep * (values[at] / mean - 1));
        const bool cut_short = best.cut_short || found.cut_short;
        if (worst < least) {
            least = worst;
            best = std::move(found);
        }
        best.cut_short = cut_short;
        if (options.stop.stop_requested()) break;
    }
    return best;
}

}  // namespace

Solution search_jointly(const PlaceInput& input, const PlaceOptions& options) {
    PlaceOptions all = options;
    if (!all.objective) all.objective = usual_objective(input);
    if (options.worst_profile && input.profiles.size() > 1) return solve_for_worst(input, all);
    return solve_once(input, all, Budget(options.time_limit, options.stop));
}

Solution solve_joint(const PlaceInput& input, const PlaceOptions& options) {
    // 8 experts on 4 GPUs; so many the exact method goes through in less than a second.
    constexpr double kFew = 2520;
    const Objective want = options.objective.value_or(usual_objective(input));
    if (input.redundant == 0 && !options.max_moves && !options.worst_profile && want.pair <= 0 &&
        (!options.current || want.moved > 0) &&
        count_placements(input.profiles.front().experts, input.gpus) <= kFew) {
        Solution best = solve_exact(input, options);
        // Labels cost such an objective nothing; others gain when tokens stay on their GPU.
        const std::vector<Matrix> moves = transitions(input.profiles);
        const bool free = want.transitions <= 0 && want.node_transitions <= 0 && input.nodes == 1 &&
                          !options.current;
        if (free && !moves.empty()) align(best.layout, moves);
        if (!best.cut_short) return best;
    }
    Solution found = search_jointly(input, options);
    return input.redundant > 0 ? better_of(found, solve_eplb(input, options), input, options)
                               : found;
}

}  // namespace moehub
