/// The methods of place(), each in a file of its own. They get checked input: profiles that fit
/// together, slots that divide by GPUs, GPUs by nodes.
#pragma once
#include <moehub/place.hpp>

#include <optional>

namespace moehub {

struct Solution {
    ExpertLayout layout;
    std::optional<double> bound;  ///< of the objective, where the method proves one
    bool cut_short = false;
    std::vector<std::string> notes;
};

Solution solve_contiguous(const PlaceInput& input, const PlaceOptions& options);
Solution solve_round_robin(const PlaceInput& input, const PlaceOptions& options);
Solution solve_eplb(const PlaceInput& input, const PlaceOptions& options);
Solution solve_metis(const PlaceInput& input, const PlaceOptions& options);
Solution solve_moetuner(const PlaceInput& input, const PlaceOptions& options);
Solution solve_exact(const PlaceInput& input, const PlaceOptions& options);
Solution solve_joint(const PlaceInput& input, const PlaceOptions& options);
/// The search of solve_joint, without asking the exact method or EPLB first.
Solution search_jointly(const PlaceInput& input, const PlaceOptions& options);

}  // namespace moehub
