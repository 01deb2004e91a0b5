/// The methods of place(), each in a file of its own. They get checked input: profiles that fit
/// together, slots that divide by GPUs, GPUs by nodes.
#pragma once
#include <moehub/place.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

namespace moehub {

struct Solution {
    ExpertLayout layout;
    std::optional<double> bound;  ///< bound on the objective, where the method proves one
    bool cut_short = false;
    std::vector<std::string> notes;
};

/// How layouts are evaluated for this input, and slots of all its layers.
inline EvaluateOptions evaluate_options(const PlaceInput& input, const PlaceOptions& options) {
    return {input.nodes, options.batch, options.current ? &*options.current : nullptr};
}
inline std::int64_t slots_of(const PlaceInput& input) {
    const Profile& first = input.profiles.front();
    return std::int64_t{first.layers} * (first.experts + input.redundant);
}

/// The objective, which the options name, as each profile sees it; and their weighted mean.
std::vector<double> values_of(const PlaceInput& input, const PlaceOptions& options,
                              const ExpertLayout& layout);
double mean_value(const PlaceInput& input, const std::vector<double>& values);

/// The time at which so many seconds are over.
inline std::chrono::steady_clock::time_point end_after(double seconds) {
    using Clock = std::chrono::steady_clock;
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(std::min(seconds, 1e9)));
}

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
