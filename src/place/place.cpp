#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "place/bound.hpp"
#include "place/methods.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct Method {
    const char* name;
    const char* title;
    Solution (*solve)(const PlaceInput&, const PlaceOptions&);
};
constexpr Method kMethods[] = {
    {"joint", "annealing of all that the objective names at once, under load caps", solve_joint},
    {"exact", "the optimum, where a layer's placements can be counted", solve_exact},
    {"moetuner", "MoETuner's two integer programs: balanced clusters, then clusters to GPUs",
     solve_moetuner},
    {"eplb", "DeepSeek's EPLB: copies for the busiest, packed evenly", solve_eplb},
    {"metis", "METIS on the co-activation graph of each layer", solve_metis},
    {"round-robin", "expert e on GPU e mod GPUs", solve_round_robin},
    {"contiguous", "experts in order, as servers start without a file", solve_contiguous},
};

const Method& method_of(const std::string& name) {
    std::vector<std::string> known;
    for (const Method& method : kMethods) {
        if (name == method.name) return method;
        known.emplace_back(method.name);
    }
    throw input_error("--method: found {}, allowed: {}{}", quoted(name), fmt::join(known, ", "),
                      did_you_mean(name, known));
}

void check_sizes(const PlaceInput& input) {
    if (input.profiles.empty()) throw InputError("--profile: found nothing, allowed: FILE");
    check_together(input.profiles);
    const Profile& first = input.profiles.front();
    const auto refuse = [](const std::string& line) { throw InputError(line); };
    const int slots = first.experts + input.redundant;
    if (input.gpus < 1) refuse(fmt::format("--gpus: found {}, allowed: 1 or more", input.gpus));
    if (input.redundant < 0)
        refuse(fmt::format("--replicas: found {}, allowed: 0 or more", input.redundant));
    if (slots % input.gpus != 0)
        refuse(
            fmt::format("--gpus: found {} experts and {} replicas on {} GPUs, allowed: as many "
                        "slots on every GPU (--replicas {}, another --gpus; --experts where some "
                        "were never chosen)",
                        first.experts, input.redundant, input.gpus,
                        input.redundant + input.gpus - slots % input.gpus));
    constexpr int kMostSlots = 4096;  // tables of slots by slots
    if (slots > kMostSlots)
        refuse(fmt::format("--experts, --replicas: found {} slots in a layer, allowed: at most {}",
                           slots, kMostSlots));
    if (slots > std::int64_t{first.experts} * input.gpus)
        refuse(
            fmt::format("--replicas: found {}, allowed: at most {}, a copy of every expert on "
                        "every GPU",
                        input.redundant, first.experts * (input.gpus - 1)));
    if (input.nodes < 1 || input.gpus % input.nodes != 0)
        refuse(fmt::format("--nodes: found {}, allowed: a divisor of {} GPUs", input.nodes,
                           input.gpus));
    if (input.groups < 1 || first.experts % input.groups != 0)
        refuse(fmt::format("--groups: found {}, allowed: a divisor of {} experts", input.groups,
                           first.experts));
}

void check_options(const PlaceInput& input, const PlaceOptions& options,
                   const Objective& objective) {
    const auto refuse = [](const std::string& line) { throw InputError(line); };
    const bool tokens = std::all_of(input.profiles.begin(), input.profiles.end(),
                                    [](const Profile& profile) { return profile.has_tokens(); });
    if (!tokens &&
        (objective.gpus > 0 || objective.nodes > 0 || objective.transitions > 0 ||
         objective.node_transitions > 0 || objective.pair > 0 || objective.activated > 0))
        refuse(
            fmt::format("--objective: found {} and a profile of counts, allowed: load, moved; "
                        "the others need every token's experts",
                        to_string(objective)));
    if (objective == Objective{})
        refuse("--objective: found nothing, allowed: at least one weight");
    if (objective.moved > 0 && !options.current)
        refuse("--objective: found moved, allowed: with --current");
    if (options.max_moves && !options.current)
        refuse("--max-moves: found no current layout, allowed: with --current");
    if (options.max_moves && options.method != "joint")
        refuse(fmt::format("--max-moves: found with --method {}, allowed: with joint",
                           options.method));
    if (options.max_moves && *options.max_moves < 0)
        refuse(fmt::format("--max-moves: found {}, allowed: 0 or more", *options.max_moves));
    if (options.load_cap != 0 && !(options.load_cap >= 1 && std::isfinite(options.load_cap)))
        refuse(fmt::format("--load-cap: found {}, allowed: 1 or more, or 0 for none",
                           options.load_cap));
    if (!(options.time_limit > 0 && options.time_limit <= 1e6))
        refuse(fmt::format("--time-limit: found {}, allowed: seconds above 0", options.time_limit));
    if (options.load_blocks < 1 || options.load_blocks > 64)
        refuse(fmt::format("--load-blocks: found {}, allowed: 1 to 64", options.load_blocks));
    if (options.batch < 1)
        refuse(fmt::format("--batch: found {}, allowed: 1 or more", options.batch));
    if (options.load_blocks > 1 && options.method != "joint" && options.method != "exact")
        refuse(fmt::format("--load-blocks: found with --method {}, allowed: with joint, exact",
                           options.method));
    if (options.worst_profile && options.method != "joint")
        refuse(fmt::format("--worst-profile: found with --method {}, allowed: with joint",
                           options.method));
    if (options.current) {
        const ExpertLayout& current = *options.current;
        const Profile& first = input.profiles.front();
        check(current, "--current");
        if (current.gpus != input.gpus || current.experts != first.experts ||
            current.layers() != first.layers)
            refuse(
                fmt::format("--current: found {} layers of {} experts on {} GPUs, allowed: the "
                            "profile's {} of {} on {}",
                            current.layers(), current.experts, current.gpus, first.layers,
                            first.experts, input.gpus));
        if (options.max_moves &&
            slots_per_gpu(current) * input.gpus != first.experts + input.redundant)
            refuse(
                fmt::format("--current: found other slots than --replicas {} gives, allowed: "
                            "the same with --max-moves",
                            input.redundant));
    }
}

/// Weighted mean of the objective, or the worst.
double value_over(const PlaceInput& input, const PlaceOptions& options, const PlaceResult& result) {
    const Profile& first = input.profiles.front();
    const std::int64_t slots = std::int64_t{first.layers} * (first.experts + input.redundant);
    double sum = 0;
    double weights = 0;
    double worst = 0;
    for (std::size_t at = 0; at < input.profiles.size(); ++at) {
        const double value = value_of(result.objective, result.profiles[at], slots);
        sum += input.profiles[at].weight * value;
        weights += input.profiles[at].weight;
        worst = std::max(worst, value);
    }
    return options.worst_profile ? worst : sum / weights;
}

}  // namespace

std::vector<PlaceMethod> place_methods() {
    std::vector<PlaceMethod> methods;
    for (const Method& method : kMethods) methods.push_back({method.name, method.title});
    return methods;
}

Objective usual_objective(const PlaceInput& input) {
    Objective objective;
    const bool tokens = std::all_of(input.profiles.begin(), input.profiles.end(),
                                    [](const Profile& profile) { return profile.has_tokens(); });
    if (!tokens) {
        objective.load = 1;
        return objective;
    }
    objective.gpus = 1;
    if (input.nodes > 1) objective.nodes = 4;
    return objective;
}

PlaceResult place(const PlaceInput& input, const PlaceOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    const Method& method = method_of(options.method);
    check_sizes(input);
    PlaceResult result;
    result.objective = options.objective.value_or(usual_objective(input));
    check_options(input, options, result.objective);
    PlaceOptions with_objective = options;
    with_objective.objective = result.objective;
    Solution solution = method.solve(input, with_objective);
    check(solution.layout, method.name);
    result.layout = std::move(solution.layout);
    result.cut_short = solution.cut_short;
    result.notes = std::move(solution.notes);
    for (const Profile& profile : input.profiles)
        result.profiles.push_back(
            evaluate(profile, result.layout,
                     {input.nodes, options.batch, options.current ? &*options.current : nullptr}));
    result.value = value_over(input, options, result);
    if (options.bounds) result.bounds = lower_bounds(input, with_objective, result.layout);
    result.bound = bound_of(result.objective, result.bounds);
    if (solution.bound) result.bound = std::max(result.bound, *solution.bound);
    result.gap = result.bound > 0 ? result.value / result.bound - 1 : 0;
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

}  // namespace moehub
