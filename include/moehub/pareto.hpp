/// Layouts between which a user must choose: of load, GPUs per token, transitions and the heaviest
/// pair none is better in everything.
///
///     std::vector<ParetoPoint> points = place_pareto(input, options, {});
///     for (const ParetoPoint& point : pareto_front(points)) fmt::print("{}\n", flags_of(point));
#pragma once
#include <moehub/place.hpp>

#include <string>
#include <vector>

namespace moehub {

/// A layout that was found, how, and what it costs.
struct ParetoPoint {
    std::string method = "joint";
    Objective objective;
    double load_cap = 0;
    double time_limit = 0;  ///< seconds
    Evaluation evaluation;  ///< mean over the profiles it was judged by
};

/// What is tried: several load caps under the usual objective, then weights between GPUs and
/// transitions, transitions alone, the heaviest pair, the load. Objective and cap of the options
/// are left out: the caller has that point. All have the same share of the time limit.
std::vector<ParetoPoint> pareto_tries(const PlaceInput& input, const PlaceOptions& options);

/// Places by each of them, one after the other, within the time limit together, and evaluates them
/// on `judges`, or on the input's profiles where there are none. What stop cut off is not there.
/// Throws InputError as place() does, and for a profile of counts.
std::vector<ParetoPoint> place_pareto(const PlaceInput& input, const PlaceOptions& options,
                                      const std::vector<Profile>& judges);

/// Those that no other beats: as good in everything and better in something. Of equals the first.
/// In the order given.
std::vector<ParetoPoint> pareto_front(const std::vector<ParetoPoint>& points);

/// Options of `moehub place` that give it.
std::string flags_of(const ParetoPoint& point);

/// Weighted mean of one layout's evaluations; the worst layer is the worst of all.
Evaluation mean_evaluation(const std::vector<Evaluation>& evaluations,
                           const std::vector<double>& weights);

}  // namespace moehub
