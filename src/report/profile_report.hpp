/// Recorded routing for the terminal, for programs and as a picture. Names of files may
/// hold anything: every form escapes them.
#pragma once
#include "base/json.hpp"
#include "report/text_style.hpp"

#include <moehub/profile_summary.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

struct ProfileReport {
    std::vector<ProfileSummary> profiles;  ///< at least one
    std::vector<ProfileDifference> differences;
    /// Place in `layers`, not its number: the layer to tell in detail. None: only overviews, and
    /// pictures of telling_layer().
    std::optional<int> layer;
    PairMatrices pairs;  ///< of the first profile, in `layer` or telling_layer(); may be empty

    int pictured_layer() const;
};

/// Place of the layer whose pairs exceed chance by most; 0 without pairs.
int telling_layer(const ProfileSummary& summary);

/// Heads, overview, a table by layer or one layer in detail, a map of the load, and what it means.
/// With `colour` escape sequences of 256 colours.
std::string profile_text(const ProfileReport& report, const TextStyle& style);

/// "profiles" with everything by layer, and "differences". Keys are always in the same order.
Json profile_json(const ProfileReport& report);

/// Load of layers × experts, beside it GPUs, transitions and pairs by layer; pairs of one layer.
std::string profile_svg(const ProfileReport& report);

/// What it means for placing experts; a plain sentence each.
std::vector<std::string> profile_sentences(const ProfileReport& report);

}  // namespace moehub
