/// Places experts on GPUs from recorded routing.
///
///     PlaceInput input{.profiles = {read_profile(parse_profile_source("trace.npy"))}, .gpus = 8};
///     const PlaceResult result = place(input, {});
///     write(layout_text(result.layout, LayoutFormat::sglang));
///
/// With copies of an expert, token t goes to copy t mod copies, copies counted by GPU; the load of
/// an expert counts in equal parts on its copies. Same input, options and seed: same layout, unless
/// the time limit or `stop` cut the search short.
#pragma once
#include <moehub/expert_layout.hpp>
#include <moehub/profile.hpp>

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace moehub {

struct PlaceInput {
    std::vector<Profile> profiles;  ///< one profile or more, of the same layers and experts
    int gpus = 8;
    int nodes = 1;      ///< nodes with the same number of GPUs, in order; a divisor of gpus
    int groups = 1;     ///< expert groups, for hierarchical eplb
    int redundant = 0;  ///< slots of a layer beyond one per expert
};

/// What a layout costs as seen by one profile. Values that need tokens are 0 without them.
struct Evaluation {
    double load_max_over_mean = 0;  ///< busiest GPU over the mean, mean over layers
    double load_worst_layer = 0;    ///< busiest GPU over the mean in the worst layer
    double gpus_per_token = 0;      ///< distinct GPUs a token goes to in a layer, mean
    double nodes_per_token = 0;     ///< distinct nodes a token goes to in a layer, mean
    /// The share of (expert in a layer, expert in the next) pairs of a token that is on two GPUs.
    double off_gpu_transitions = 0;
    double off_node_transitions = 0;
    /// The pair of GPUs with the most transitions between them (both ways, over all layers), over
    /// what it were if transitions were spread evenly.
    double heaviest_pair = 0;
    /// MoETuner's measure of the heaviest pair: the heaviest ordered pair of each boundary between
    /// layers over an even spread, mean.
    double heaviest_pair_by_layer = 0;
    /// Experts that a batch of tokens wakes on the GPU with the most, over the mean; mean over
    /// whole batches and layers.
    double activated_max_over_mean = 0;
    std::int64_t moved_experts = 0;  ///< slots other than in the current layout, if any
};

struct EvaluateOptions {
    int nodes = 1;
    int batch = 64;                         ///< tokens of a decode step, for activated experts
    const ExpertLayout* current = nullptr;  ///< for moved experts; may be null
};
/// Costs recomputed from the tokens, whatever a search believes. Throws InputError when layers or
/// experts do not match.
Evaluation evaluate(const Profile& profile, const ExpertLayout& layout,
                    const EvaluateOptions& options = {});

/// Weights of what the search minimises: their sum over the Evaluation of the same name (moved:
/// share of all slots). Parsed from and printed as "gpus", "gpus+4*transitions", …
struct Objective {
    double load = 0;
    double gpus = 0;
    double nodes = 0;
    double transitions = 0;
    double node_transitions = 0;
    double pair = 0;
    double activated = 0;
    double moved = 0;
    bool operator==(const Objective&) const = default;
};
Objective parse_objective(const std::string& text);
std::string to_string(const Objective& objective);
/// The weighted sum of an evaluation; `slots` of a layer times layers, for moved.
double value_of(const Objective& objective, const Evaluation& evaluation, std::int64_t slots);

struct PlaceOptions {
    std::string method = "joint";        ///< one of place_methods()
    std::optional<Objective> objective;  ///< without it usual_objective()
    double load_cap = 1.06;      ///< most load of a GPU over the mean in any layer and profile
    int load_blocks = 1;         ///< the cap holds in each of so many runs of the profile's tokens
    bool worst_profile = false;  ///< minimise the worst profile, not the weighted mean
    bool unequal = false;        ///< moetuner: clusters of any size, as its authors have
    int batch = 64;              ///< tokens of a decode step, for activated experts
    std::optional<ExpertLayout> current;
    std::optional<std::int64_t> max_moves;  ///< most experts moved from `current`
    double time_limit = 10;                 ///< seconds
    std::uint64_t seed = 1;
    bool bounds = true;    ///< false: no lower bounds, which take a while on large models
    int threads = 0;       ///< threads of the search; 0: as many as there are cores; same result
    std::stop_token stop;  ///< ends the search with the best so far
    /// Called with (share done, 0 to 1; objective of the best so far, 0 where a method does not
    /// say), by one thread at a time. May be empty.
    std::function<void(double, double)> progress;
};

struct PlaceResult {
    ExpertLayout layout;
    Objective objective;               ///< what was minimised
    std::vector<Evaluation> profiles;  ///< evaluations of the layout, one per profile
    double value = 0;                  ///< the objective, weighted mean over the profiles
    double bound = 0;   ///< no layout within the caps, with the same copies, is below this
    double gap = 0;     ///< value / bound − 1
    Evaluation bounds;  ///< a lower bound of each part on its own
    double seconds = 0;
    bool cut_short = false;          ///< time limit or stop ended it: may differ the next time
    std::vector<std::string> notes;  ///< what the user should know, a line each
};

/// A method: joint, exact, moetuner, eplb, metis, round-robin or contiguous, with a line on it.
struct PlaceMethod {
    std::string name;
    std::string title;
};
std::vector<PlaceMethod> place_methods();

/// The usual one: gpus; over several nodes gpus+4*nodes; load where only counts are known.
Objective usual_objective(const PlaceInput& input);

/// Throws InputError when sizes do not fit, or the method cannot do what is asked.
PlaceResult place(const PlaceInput& input, const PlaceOptions& options = {});

// Layouts between which a user must choose: of load, GPUs per token, transitions and the heaviest
// pair none is better in everything.
//
//     std::vector<ParetoPoint> points = place_pareto(input, options, {});
//     for (const ParetoPoint& point : pareto_front(points)) fmt::print("{}\n", flags_of(point));

/// A layout that was found, how, and what it costs.
struct ParetoPoint {
    std::string method = "joint";
    Objective objective;
    double load_cap = 0;
    double time_limit = 0;  ///< seconds
    Evaluation evaluation;  ///< mean over the profiles it was judged by
};

/// The points to try: several load caps under the usual objective, then weights between GPUs and
/// transitions, transitions alone, the heaviest pair, the load. Objective and cap of the options
/// are left out: the caller has that point. All have the same share of the time limit.
std::vector<ParetoPoint> pareto_tries(const PlaceInput& input, const PlaceOptions& options);

/// Places by each of pareto_tries(), one after the other, within the time limit together, and
/// evaluates them on `judges`, or on the input's profiles where there are none. What stop cut off
/// is not there. Throws InputError as place() does, and for a profile of counts.
std::vector<ParetoPoint> place_pareto(const PlaceInput& input, const PlaceOptions& options,
                                      const std::vector<Profile>& judges);

/// Points that no other beats (as good in everything and better in something), in the order given.
/// Of equals the first.
std::vector<ParetoPoint> pareto_front(const std::vector<ParetoPoint>& points);

/// Options of `moehub place` that give the point.
std::string flags_of(const ParetoPoint& point);

/// Weighted mean of one layout's evaluations; the worst layer is the worst of all.
Evaluation mean_evaluation(const std::vector<Evaluation>& evaluations,
                           const std::vector<double>& weights);

}  // namespace moehub
