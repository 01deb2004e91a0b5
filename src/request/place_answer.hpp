/// A placement from the search to its report.
#pragma once
#include "report/placement_report.hpp"
#include "request/place_arguments.hpp"

#include <functional>
#include <stop_token>

namespace moehub {

struct Placed {
    PlaceResult result;
    std::vector<ParetoPoint> points;  ///< with --pareto the one asked for, then the others
    bool interrupted = false;         ///< before the one asked for was done
    std::optional<PlacementEffect> effect;
    std::string taken;  ///< the layout's name in the effect
};

/// Who looks on while a search runs.
struct SearchWatch {
    std::stop_token stop;                        ///< ends it with the best so far
    std::function<void(double share)> progress;  ///< 0 to 1, by one thread at a time; may be empty
};

/// With `pareto` what was asked for has half of the time, other objectives and caps share the rest.
Placed search_layout(PlaceTask& task, bool pareto, const SearchWatch& watch);

/// Where systems are named, the fastest layout under the first takes the place of the one found;
/// whether that is another one.
bool take_fastest(PlaceTask& task, Placed& placed);

/// Layers of the model that the profile lacks stand in the files of some servers all the same.
void note_layers_in_order(const PlaceTask& task, Placed& placed);

PlacementReport report_of(const PlaceArguments& arguments, const PlaceTask& task,
                          const Placed& placed);

}  // namespace moehub
