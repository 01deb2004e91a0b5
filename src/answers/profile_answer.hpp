/// What recorded routing is answered with: figures by layer, maps, and what they mean for placing.
#pragma once
#include "report/answer.hpp"

#include <moehub/profile_summary.hpp>

#include <optional>
#include <string>
#include <vector>

namespace moehub {

struct ProfileReport {
    std::vector<ProfileSummary> profiles;  ///< at least one
    std::vector<ProfileDifference> differences = {};
    /// Place in `layers`, not its number: the layer to tell in detail. None: overviews alone, and
    /// on pages details of telling_layer().
    std::optional<int> layer = {};
    PairMatrices pairs = {};  ///< first profile's, in detailed_layer(); may be empty

    int detailed_layer() const;
};

/// Place of the layer whose pairs exceed chance by most; 0 without pairs.
int telling_layer(const ProfileSummary& summary);

Answer profile_answer(const ProfileReport& report);

/// Rows of experts over their layer's mean, [layer][expert]; 0 in layers without rows.
HeatChart load_map(const ProfileSummary& summary);
/// Layer by layer: GPUs' balance, and how pairs concentrate.
std::vector<LineChart> layer_charts(const ProfileSummary& summary);
/// Maps of the pairs that the report has; experts ordered such that their blocks are seen.
Section pairs_section(const ProfileReport& report);

/// What it means for placing experts; a plain sentence each.
std::vector<std::string> profile_sentences(const ProfileReport& report);

}  // namespace moehub
