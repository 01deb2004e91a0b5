/// The stages of the joint search.
#pragma once
#include "place/search/joint_problem.hpp"

namespace moehub {

/// The best GPUs found for the items within the budget, from the problem's first ones.
ItemGpus search_stages(const JointProblem& problem, const PlaceInput& input,
                       const PlaceOptions& options, const Budget& budget);

}  // namespace moehub
