/// Simulated annealing over swaps: a swap that adds d to the energy is taken with probability
/// exp(−d/T), T falling from hot to cold (Kirkpatrick, Gelatt, Vecchi 1983).
#pragma once
#include "base/rng.hpp"
#include "place/search/search.hpp"

#include <functional>

namespace moehub {

struct Schedule {
    double work = 0;  ///< Search::proposal_cost() each, and swap_cost() where it is taken
    double hot = 0;   ///< temperature at the start, in mean changes of a random swap
    double cold = 0;  ///< at the end
};

/// Ends early when `stopped`, which is asked now and then, says so; returns false then.
bool anneal(Search& search, const Schedule& schedule, Rng& rng,
            const std::function<bool()>& stopped);

/// Takes every swap that lowers the energy until there is none.
bool descend(Search& search, const std::function<bool()>& stopped);

}  // namespace moehub
