/// A placement of experts for the terminal and for programs: what was asked, layouts side by side
/// on the same tokens, what it means. Names of files may hold anything: every form escapes them.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"

#include <moehub/pareto.hpp>
#include <moehub/place.hpp>
#include <moehub/placement_effect.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace moehub {

/// Which parts of an Evaluation mean something.
struct KnownParts {
    bool tokens = false;       ///< what needs every token's experts
    bool transitions = false;  ///< likewise, and a next layer
    bool moved = false;        ///< there is a current layout
};

struct PlacementRow {
    std::string layout;
    Evaluation evaluation;
};

/// Layouts side by side on the same tokens: what servers start with, the current one where there
/// is one, and last the one that was found.
struct PlacementTable {
    std::string profile;  ///< as written
    double weight = 1;
    std::int64_t tokens = 0;
    int steps = 0;  ///< of counts recorded step by step
    KnownParts known;
    std::vector<PlacementRow> rows;

    /// What it can be cut into: tokens, or steps.
    std::int64_t parts() const { return tokens > 0 ? tokens : steps; }
    /// Of the runs asked for those there are.
    int blocks(int asked) const {
        return static_cast<int>(
            std::clamp<std::int64_t>(asked, 1, std::max<std::int64_t>(1, parts())));
    }

    const Evaluation& found() const { return rows.back().evaluation; }
};

/// What place() was asked and gave. All of it must outlive the call that takes it.
struct PlacedCase {
    const PlaceInput& input;
    const PlaceOptions& options;
    const PlaceResult& result;
    const std::vector<Profile>& held_out;  ///< may be empty
};

/// Where the layout went.
struct PlacementFile {
    std::string path;  ///< empty: nowhere
    LayoutFormat format = LayoutFormat::sglang;
};

struct PlacementReport {
    std::string method;
    std::string machine;
    std::optional<std::string> model;
    int layers = 0;
    int experts = 0;
    int top_k = 0;  ///< 0: only counts are known
    int gpus = 0;
    int nodes = 1;
    int replicas = 0;
    int slots_per_gpu = 0;   ///< 0: they differ
    std::int64_t slots = 0;  ///< of all layers
    double load_cap = 0;
    int load_blocks = 1;
    bool worst_profile = false;
    std::uint64_t seed = 1;
    bool interrupted = false;  ///< where the search was cut short: by the user, not the clock

    PlaceResult result;
    std::vector<PlacementTable> training;
    std::vector<PlacementTable> held_out;
    std::vector<std::vector<double>> pairs;  ///< pair_traffic() where it is wanted
    std::optional<std::vector<ParetoPoint>> pareto;
    std::optional<PlacementEffect> effect;
    std::string taken;  ///< of the effect's layouts: the one in `result`
    PlacementFile file;

    /// Only these know load caps.
    bool searches() const { return method == "joint" || method == "exact"; }
    /// What the layout is judged by: held-out tokens where there are some.
    const std::vector<PlacementTable>& judged() const {
        return held_out.empty() ? training : held_out;
    }
};

/// Layouts that need no search, for comparison: contiguous, eplb, and the current one.
std::vector<NamedLayout> baseline_layouts(const PlacedCase& placed);

/// Evaluates the found layout and the baselines on all profiles. Machine, model, file, pairs,
/// front, effect and who interrupted are the caller's to fill in.
PlacementReport placement_report(const PlacedCase& placed);

/// Of the transitions of all tokens the share from one GPU (row) to another (column), mean over
/// the profiles that have tokens. Empty without a next layer, and for more GPUs than one reads.
std::vector<std::vector<double>> pair_traffic(const std::vector<Profile>& profiles,
                                              const ExpertLayout& layout);

/// All tables in one, each row the mean over them.
PlacementTable mean_table(const std::vector<PlacementTable>& tables);

/// Head, a table per profile, the front, simulated effects, and what it means.
std::string placement_text(const PlacementReport& report, const TextStyle& style);

/// The method and what it minimises, or what it is judged by where it has its own aim.
std::string method_text(const PlacementReport& report);

/// EPLB's layout under that system; null where it was not simulated.
const LayoutEffect* eplb_of(const PlacementEffect& effect, const std::string& system);

/// How many times as fast as with EPLB's layout, "–" where that was not simulated.
std::string over_eplb(const PlacementEffect& effect, const LayoutEffect& one);

/// Simulated times of the layouts; empty without them.
std::string effect_text(const PlacementReport& report, const TextStyle& style);

/// Keys are always the same, in the same order; what is not known is null.
Json placement_json(const PlacementReport& report);

/// The gain, the bound, what carries over, what to do next; a plain sentence each.
std::vector<std::string> placement_sentences(const PlacementReport& report);

/// Which traffic the figures stand for.
std::string traffic_model();

}  // namespace moehub
