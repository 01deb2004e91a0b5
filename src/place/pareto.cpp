// The front of what can be had: a point is on it unless another is at most as costly in every
// figure and less in one. The figures are load, GPUs (and nodes) per token, off-GPU transitions and
// the heaviest pair; searches weigh them one against the other, the user chooses.
#include "base/quantity.hpp"
#include "place/counts.hpp"
#include "place/methods.hpp"

#include <moehub/error.hpp>
#include <moehub/place.hpp>

#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::array kCaps{1.02, 1.06, 1.1, 1.2};
/// Weights that span from off-GPU transitions, which are a share, to GPUs per token, a few.
constexpr std::array kTransitionWeights{0.5, 2.0, 8.0};

using Costs = std::array<double, 5>;

/// The figures to compare. Nodes are the same for all layouts on one node, and then decide nothing.
Costs costs_of(const Evaluation& evaluation) {
    return {evaluation.load_max_over_mean, evaluation.gpus_per_token, evaluation.nodes_per_token,
            evaluation.off_gpu_transitions, evaluation.heaviest_pair};
}

bool beats(const Costs& a, const Costs& b) {
    bool better = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] > b[i]) return false;
        better = better || a[i] < b[i];
    }
    return better;
}

void check_tokens(const PlaceInput& input) {
    if (!all_have_tokens(input.profiles))
        throw InputError(
            "--pareto: found a profile of counts, allowed: one with every token's experts");
}

/// Seconds of each part in whole milliseconds, so that the flag that gives it is short.
double short_share(double seconds, std::size_t parts) {
    return std::max(1.0, std::floor(1000 * seconds / static_cast<double>(parts))) / 1000;
}

/// Places, and evaluates on the judges, or where there are none on the profiles.
Evaluation judged_by(const std::vector<Profile>& judges, const PlaceInput& input,
                     const PlaceOptions& options) {
    const PlaceResult result = place(input, options);
    std::vector<double> weights;
    for (const Profile& profile : judges.empty() ? input.profiles : judges)
        weights.push_back(profile.weight);
    if (judges.empty()) return mean_evaluation(result.profiles, weights);
    std::vector<Evaluation> evaluations;
    for (const Profile& judge : judges)
        evaluations.push_back(evaluate(judge, result.layout, evaluate_options(input, options)));
    return mean_evaluation(evaluations, weights);
}

}  // namespace

std::vector<ParetoPoint> pareto_tries(const PlaceInput& input, const PlaceOptions& options) {
    check_tokens(input);
    const Objective usual = usual_objective(input);
    std::vector<ParetoPoint> tries;
    const auto add = [&](const Objective& objective, double cap) {
        if (objective == options.objective.value_or(usual) && cap == options.load_cap) return;
        tries.push_back({"joint", objective, cap, 0, {}});
    };
    for (const double cap : kCaps) add(usual, cap);
    if (input.profiles.front().layers > 1) {
        for (const double weight : kTransitionWeights) {
            Objective both = usual;
            both.transitions = weight;
            add(both, options.load_cap);
        }
        add({.transitions = 1}, options.load_cap);
        add({.transitions = 6, .pair = 1}, options.load_cap);
    }
    add({.load = 1}, options.load_cap);
    for (ParetoPoint& one : tries) one.time_limit = short_share(options.time_limit, tries.size());
    return tries;
}

std::vector<ParetoPoint> place_pareto(const PlaceInput& input, const PlaceOptions& options,
                                      const std::vector<Profile>& judges) {
    std::vector<ParetoPoint> points = pareto_tries(input, options);
    const auto all = static_cast<double>(points.size());
    std::size_t done = 0;
    for (ParetoPoint& point : points) {
        if (options.stop.stop_requested()) break;
        PlaceOptions own = options;
        own.method = point.method;
        own.objective = point.objective;
        own.load_cap = point.load_cap;
        own.time_limit = point.time_limit;
        if (options.progress)
            own.progress = [&options, done, all](double share, double value) {
                options.progress((static_cast<double>(done) + share) / all, value);
            };
        point.evaluation = judged_by(judges, input, own);
        ++done;
    }
    points.resize(done);
    return points;
}

std::vector<ParetoPoint> pareto_front(const std::vector<ParetoPoint>& points) {
    std::vector<Costs> costs;
    for (const ParetoPoint& point : points) costs.push_back(costs_of(point.evaluation));
    std::vector<ParetoPoint> front;
    for (std::size_t one = 0; one < points.size(); ++one) {
        bool kept = true;
        for (std::size_t other = 0; other < points.size() && kept; ++other)
            kept = !beats(costs[other], costs[one]) && !(other < one && costs[other] == costs[one]);
        if (kept) front.push_back(points[one]);
    }
    return front;
}

std::string flags_of(const ParetoPoint& point) {
    return fmt::format("{}--objective {} --load-cap {} --time-limit {}",
                       point.method == "joint" ? "" : fmt::format("--method {} ", point.method),
                       to_string(point.objective), print_number(point.load_cap),
                       print_number(point.time_limit));
}

Evaluation mean_evaluation(const std::vector<Evaluation>& evaluations,
                           const std::vector<double>& weights) {
    Evaluation mean;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t i = 0; i < evaluations.size(); ++i) {
        const double share = weights[i] / sum;
        const Evaluation& one = evaluations[i];
        for (const auto part :
             {&Evaluation::load_max_over_mean, &Evaluation::gpus_per_token,
              &Evaluation::nodes_per_token, &Evaluation::off_gpu_transitions,
              &Evaluation::off_node_transitions, &Evaluation::heaviest_pair,
              &Evaluation::heaviest_pair_by_layer, &Evaluation::activated_max_over_mean})
            mean.*part += share * one.*part;
        mean.load_worst_layer = std::max(mean.load_worst_layer, one.load_worst_layer);
        mean.moved_experts = one.moved_experts;
    }
    return mean;
}

}  // namespace moehub
