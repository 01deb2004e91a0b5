/// The evaluation of the MoETuner paper (arXiv 2502.06643): Mixtral served by Megatron, experts in
/// order against experts placed by its two integer programs.
#pragma once
#include "study/reproduce_paper.hpp"

#include <moehub/place.hpp>
#include <moehub/placement_effect.hpp>
#include <moehub/reproduce.hpp>
#include <moehub/routing.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// How much is simulated.
struct MoeTunerScope {
    int layers = 0;
    std::int64_t tokens = 0;  ///< tokens recorded: half to place for, half to simulate
    std::int64_t step_tokens = 0;
};
inline constexpr MoeTunerScope kWholeMoeTuner{32, 16384, 4096};
/// Fewer layers would be solved by the second integer program itself, which takes longer.
inline constexpr MoeTunerScope kQuickMoeTuner{10, 4096, 2048};

struct MoeTunerSetup {
    std::string figure;
    std::string title;
    Machine machine;
    int tensor_parallel = 1;  ///< GPUs of each of the four expert-parallel ranks
};
MoeTunerSetup one_node();
MoeTunerSetup two_nodes();

/// All layouts of one setup and one routing: placed for one half of the tokens, seen with the
/// other.
struct MoeTunerTrial {
    std::vector<NamedLayout> layouts;  ///< layouts, kContiguous first
    std::vector<Evaluation> held_out;  ///< evaluation of each layout with the other tokens
    PlacementEffect effect;            ///< effect of each layout

    const LayoutEffect& of(std::string_view layout) const;
};
/// Places and simulates one trial; `routing` as parse_routing() takes it.
MoeTunerTrial run_moetuner(const MoeTunerSetup& setup, const std::string& routing,
                           const MoeTunerScope& scope, const ReproduceOptions& options);

/// The profile that recording a generated routing would give, tokens [from, to).
Profile profile_of(const Routing& routing, std::int64_t from, std::int64_t to);

FigureResult setup_figure(const MoeTunerSetup& setup, const MoeTunerTrial& trial);
/// A trial with its routing's name: one of several of a setup.
struct NamedTrial {
    std::string routing;
    const MoeTunerTrial* trial;
};
FigureResult methods_figure(const std::vector<NamedTrial>& trials);

/// Routing so uneven that in the worst layer the busiest GPU has what the paper says: see
/// reproduce_moetuner.cpp.
inline constexpr const char* kMoeTunerRouting = "lognormal:1.1,transition:0.5";
inline constexpr std::string_view kContiguous = "contiguous";
inline constexpr std::string_view kMoeTuner = "moetuner";

}  // namespace moehub
