/// A placement of experts from what was asked to its answer.
#pragma once
#include "report/answer.hpp"

#include <moehub/machine.hpp>
#include <moehub/model.hpp>
#include <moehub/place.hpp>
#include <moehub/placement_effect.hpp>
#include <moehub/system.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// What is placed, and by what it is judged.
struct PlaceTask {
    PlaceInput input;
    PlaceOptions options;
    std::vector<Profile> held_out;
    Machine machine;  ///< where systems are simulated, of the size wanted
    std::string machine_name;
    std::optional<Model> model;
    std::string model_name;
    std::vector<std::string> settings;  ///< "KEY=VALUE" that changed them
    std::vector<SystemSpec> systems;    ///< to simulate; the first decides which layout is taken
    LayoutFormat format = LayoutFormat::sglang;
    std::string file;  ///< where the layout goes; empty: nowhere

    const std::vector<Profile>& judges() const {
        return held_out.empty() ? input.profiles : held_out;
    }
};

/// What was found.
struct Placed {
    PlaceResult result;
    std::optional<std::vector<ParetoPoint>> tries;  ///< asked-for tries, without the result
    bool interrupted = false;                       ///< before the one asked for was done
    std::optional<PlacementEffect> effect;
    std::string taken;  ///< the layout's name in the effect
};

/// Where systems are named: simulates the layout beside others, and the fastest under the first
/// takes the place of the one found, in both; whether that is another one. `pieces` is called with
/// how far simulations are, and may throw Ended.
bool take_fastest(PlaceTask& task, Placed& placed,
                  const std::function<void(std::size_t, std::size_t)>& pieces);

/// Layouts side by side on the same tokens: what servers start with, the current one where there
/// is one, and last the one that was found.
struct PlacementTable {
    const Profile* profile;
    std::vector<std::string> layouts;
    std::vector<Evaluation> rows;

    bool has_tokens() const { return profile->has_tokens(); }
    bool has_transitions() const { return has_tokens() && profile->layers > 1; }
    /// What it can be cut into: tokens, or steps.
    std::int64_t parts() const { return has_tokens() ? profile->tokens : profile->steps; }
    const Evaluation& found() const { return rows.back(); }
};

struct PlacementReport {
    const PlaceTask& task;
    const Placed& placed;
    std::vector<PlacementTable> training;
    std::vector<PlacementTable> held_out;
    std::vector<std::string> idle;  ///< a sentence for each layout in which GPUs hold no expert

    /// What the layout is judged by: held-out tokens where there are some.
    const std::vector<PlacementTable>& judged() const {
        return held_out.empty() ? training : held_out;
    }
};

/// Evaluates the found layout and the others on all profiles.
PlacementReport placement_report(const PlaceTask& task, const Placed& placed);

/// Share of all tokens' transitions that go from a GPU (row) to another (column), mean over
/// the profiles that have tokens. Empty without a next layer, and for more GPUs than one reads.
std::vector<std::vector<double>> pair_traffic(const std::vector<Profile>& profiles,
                                              const ExpertLayout& layout);

/// One table for all profiles, each row a mean over theirs; it knows what the profile that knows
/// least does.
PlacementTable mean_table(const std::vector<PlacementTable>& tables);

inline constexpr const char* kEplb = "eplb";
/// What a layout does under a system; null where it was not simulated.
const LayoutEffect* effect_of(const PlacementEffect& effect, const std::string& layout,
                              const std::string& system);

/// Only these methods know load caps.
bool searches(const PlacementReport& report);

/// The gain, the bound, what carries over, what to do next; a plain sentence each.
std::vector<std::string> placement_sentences(const PlacementReport& report);

/// Which traffic the figures stand for.
std::string traffic_model();

Answer placement_answer(const PlacementReport& report);

}  // namespace moehub
