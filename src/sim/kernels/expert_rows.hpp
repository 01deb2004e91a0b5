/// How many rows each expert of the measured rank gets: the routing of the published measurements.
#pragma once
#include <array>
#include <cstdint>

namespace moehub {

inline constexpr int kMostExperts = 1024;
inline constexpr int kMostChoices = 64;

/// Tokens of an expert-parallel group choose among all its experts; this rank holds experts / ep.
struct RowDraw {
    std::int64_t tokens = 1;  ///< of the whole group
    int top_k = 1;            ///< at most kMostChoices
    int experts = 1;          ///< of the whole group, at most kMostExperts
    int ep = 1;
    double alpha = 0;  ///< 0: balanced; otherwise the exponent of the power law
    /// DeepSeek's group-limited choice: a token may only choose within `kept_groups` of `groups`
    /// equal groups of experts (1: no limit; at most 64).
    int groups = 1;
    int kept_groups = 1;
};

/// The heights of the row tiles that kernels cut an expert's rows into.
inline constexpr std::array<int, 6> kTileRows = {8, 16, 32, 64, 128, 256};

/// All that the cost of grouped products needs to know of the rows of a rank's experts. Means over
/// draws where the routing is random, so not whole numbers.
struct ExpertRows {
    double rows = 0;                               ///< (token, expert) pairs on this rank
    double experts = 0;                            ///< with at least one row
    double fullest = 0;                            ///< rows of the fullest
    std::array<double, kTileRows.size()> tiles{};  ///< Σ ⌈rows / tile rows⌉, per tile height
};

/// Rows as the published measurements drew them.
ExpertRows expert_rows(const RowDraw& draw);

/// Rows given expert by expert, for a routing of one's own.
ExpertRows expert_rows(const std::int32_t* rows, int experts);

}  // namespace moehub
