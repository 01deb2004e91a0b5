#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "place/bounds.hpp"
#include "place/counts.hpp"
#include "place/methods.hpp"

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
    const int experts = input.profiles.front().experts;
    const int slots = experts + input.redundant;
    if (input.gpus < 1) throw input_error("--gpus: found {}, allowed: 1 or more", input.gpus);
    if (input.redundant < 0)
        throw input_error("--replicas: found {}, allowed: 0 or more", input.redundant);
    if (slots % input.gpus != 0)
        throw input_error(
            "--gpus: found {} experts and {} replicas on {} GPUs, allowed: as many slots on every "
            "GPU (--replicas {}, another --gpus; --experts where some were never chosen)",
            experts, input.redundant, input.gpus,
            input.redundant + input.gpus - slots % input.gpus);
    constexpr int kMostSlots = 4096;  // tables of slots by slots
    if (slots > kMostSlots)
        throw input_error("--experts, --replicas: found {} slots in a layer, allowed: at most {}",
                          slots, kMostSlots);
    if (slots > std::int64_t{experts} * input.gpus)
        throw input_error(
            "--replicas: found {}, allowed: at most {}, a copy of every expert on every GPU",
            input.redundant, experts * (input.gpus - 1));
    if (input.nodes < 1 || input.gpus % input.nodes != 0)
        throw input_error("--nodes: found {}, allowed: a divisor of {} GPUs", input.nodes,
                          input.gpus);
    if (input.groups < 1 || experts % input.groups != 0)
        throw input_error("--groups: found {}, allowed: a divisor of {} experts", input.groups,
                          experts);
}

void check_objective(const PlaceInput& input, const PlaceOptions& options,
                     const Objective& objective) {
    Objective of_counts;
    of_counts.load = objective.load;
    of_counts.moved = objective.moved;
    if (!all_have_tokens(input.profiles) && objective != of_counts)
        throw input_error(
            "--objective: found {} and a profile of counts, allowed: load, moved; the others need "
            "every token's experts",
            to_string(objective));
    if (objective == Objective{})
        throw InputError("--objective: found nothing, allowed: at least one weight");
    if (objective.moved > 0 && !options.current)
        throw InputError("--objective: found moved, allowed: with --current");
}

void check_options(const PlaceOptions& options) {
    const auto only_with = [&](const char* option, bool asked, std::string_view methods) {
        if (asked && methods.find(options.method) == methods.npos)
            throw input_error("{}: found with --method {}, allowed: with {}", option,
                              options.method, methods);
    };
    if (options.max_moves && !options.current)
        throw InputError("--max-moves: found no current layout, allowed: with --current");
    only_with("--max-moves", options.max_moves.has_value(), "joint");
    if (options.max_moves && *options.max_moves < 0)
        throw input_error("--max-moves: found {}, allowed: 0 or more", *options.max_moves);
    if (options.load_cap != 0 && !(options.load_cap >= 1 && std::isfinite(options.load_cap)))
        throw input_error("--load-cap: found {}, allowed: 1 or more, or 0 for none",
                          options.load_cap);
    if (!(options.time_limit > 0 && options.time_limit <= 1e6))
        throw input_error("--time-limit: found {}, allowed: seconds above 0", options.time_limit);
    if (options.load_blocks < 1 || options.load_blocks > 64)
        throw input_error("--load-blocks: found {}, allowed: 1 to 64", options.load_blocks);
    if (options.batch < 1)
        throw input_error("--batch: found {}, allowed: 1 or more", options.batch);
    only_with("--load-blocks", options.load_blocks > 1, "joint, exact");
    only_with("--worst-profile", options.worst_profile, "joint");
}

void check_current(const PlaceInput& input, const PlaceOptions& options) {
    if (!options.current) return;
    const ExpertLayout& current = *options.current;
    const Profile& first = input.profiles.front();
    check(current, "--current");
    if (current.gpus != input.gpus || current.experts != first.experts ||
        current.layers() != first.layers)
        throw input_error(
            "--current: found {} layers of {} experts on {} GPUs, allowed: the profile's {} of {} "
            "on {}",
            current.layers(), current.experts, current.gpus, first.layers, first.experts,
            input.gpus);
    if (options.max_moves && slots_per_gpu(current) * input.gpus != first.experts + input.redundant)
        throw input_error(
            "--current: found other slots than --replicas {} gives, allowed: the same with "
            "--max-moves",
            input.redundant);
}

/// Slots of a layer, counted through all GPUs; slot s holds expert s mod experts.
struct Slots {
    int count = 0;
    int experts = 0;
    int gpus = 0;

    /// The GPU of a slot in order; the first count % gpus GPUs have one slot more.
    int contiguous_gpu(int slot) const {
        const int each = count / gpus, more = count % gpus;
        const int in_larger = more * (each + 1);
        return slot < in_larger ? slot / (each + 1) : more + (slot - in_larger) / each;
    }
    /// The GPU of a slot in turn. When experts divide by GPUs, each further round begins one GPU
    /// later: otherwise all copies of an expert would meet on one GPU.
    int round_robin_gpu(int slot) const {
        const int round = experts % gpus == 0 ? slot / experts : 0;
        return (slot % gpus + round) % gpus;
    }
};

template <class GpuOf>
Solution deal(const PlaceInput& input, GpuOf gpu_of) {
    const LayoutShape shape = shape_of(input.profiles.front());
    Solution solution{empty_layout(shape, input.gpus), {}, false, {}};
    const Slots slots{shape.experts + input.redundant, shape.experts, input.gpus};
    for (auto& on : solution.layout.on)
        for (int slot = 0; slot < slots.count; ++slot)
            on[at(gpu_of(slots, slot))].push_back(slot % slots.experts);
    return solution;
}

}  // namespace

std::vector<double> values_of(const PlaceInput& input, const PlaceOptions& options,
                              const ExpertLayout& layout) {
    std::vector<double> values;
    for (const Profile& profile : input.profiles)
        values.push_back(value_of(options.objective.value_or(usual_objective(input)),
                                  evaluate(profile, layout, evaluate_options(input, options)),
                                  slots_of(input)));
    return values;
}

double mean_value(const PlaceInput& input, const std::vector<double>& values) {
    double sum = 0;
    for (std::size_t profile = 0; profile < values.size(); ++profile)
        sum += input.profiles[profile].weight * values[profile];
    return sum / total_weight(input.profiles);
}

std::vector<PlaceMethod> place_methods() {
    std::vector<PlaceMethod> methods;
    for (const Method& method : kMethods) methods.push_back({method.name, method.title});
    return methods;
}

Objective usual_objective(const PlaceInput& input) {
    Objective objective;
    if (!all_have_tokens(input.profiles)) {
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
    check_objective(input, options, result.objective);
    check_options(options);
    check_current(input, options);
    PlaceOptions with_objective = options;
    with_objective.objective = result.objective;
    Solution solution = method.solve(input, with_objective);
    check(solution.layout, method.name);
    result.layout = std::move(solution.layout);
    result.cut_short = solution.cut_short;
    result.notes = std::move(solution.notes);
    std::vector<double> values;
    for (const Profile& profile : input.profiles) {
        result.profiles.push_back(
            evaluate(profile, result.layout, evaluate_options(input, options)));
        values.push_back(value_of(result.objective, result.profiles.back(), slots_of(input)));
    }
    result.value = options.worst_profile ? std::ranges::max(values) : mean_value(input, values);
    if (options.bounds) result.bounds = lower_bounds(input, with_objective, result.layout);
    result.bound = value_of(result.objective, result.bounds, 1);
    if (solution.bound) result.bound = std::max(result.bound, *solution.bound);
    result.gap = result.bound > 0 ? result.value / result.bound - 1 : 0;
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

Solution solve_contiguous(const PlaceInput& input, const PlaceOptions&) {
    return deal(input, [](const Slots& slots, int slot) { return slots.contiguous_gpu(slot); });
}

Solution solve_round_robin(const PlaceInput& input, const PlaceOptions&) {
    return deal(input, [](const Slots& slots, int slot) { return slots.round_robin_gpu(slot); });
}

}  // namespace moehub
