/// An expert's rows X follow a binomial law of n = tokens and p = its share of top_k:
///
///   experts with rows = local · mean of P(X > 0)     (even routing would fill top_k · tokens)
///   tiles of h rows   = local · mean of Σ_j P(X > j·h)
///
/// Of `ep` ranks the fullest decides: its counts lie z standard deviations above the mean, with z
/// the expected largest of ep normal numbers.
#include "base/portable_math.hpp"
#include "study/serving/costs.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace moehub {
namespace {

constexpr double kMany = 300;  ///< rows of an expert, beyond which tails are not added up

double largest_of(int ranks) {
    if (ranks == 1) return 0;
    const double log = portable_log(ranks);
    const double root = std::sqrt(2 * log);
    const double below =
        (portable_log(std::max(log, 1.0)) + portable_log(4 * std::numbers::pi)) / (2 * root);
    return std::max(0.5, root - below);
}

/// Σ_j P(X > j·h) for every tile height, and P(X > 0) as `present`.
struct Tails {
    double present = 0;
    std::array<double, kTileRows.size()> tiles{};
};

Tails tails_of(double tokens, double chance) {
    Tails tails;
    const double mean = tokens * chance;
    if (mean > kMany) {
        tails.present = 1;
        for (std::size_t i = 0; i < kTileRows.size(); ++i)
            tails.tiles[i] = mean / kTileRows[i] + 0.5;
        return tails;
    }
    const double never = chance < 1 ? portable_exp(tokens * portable_log(1 - chance)) : 0;
    tails.present = 1 - never;
    double here = never;  // P(X = x)
    double above = 1 - never;
    const double odds = chance < 1 ? chance / (1 - chance) : 0;
    for (double x = 0; above > 1e-9 && x <= tokens; ++x) {
        for (std::size_t i = 0; i < kTileRows.size(); ++i)
            if (std::fmod(x, kTileRows[i]) == 0) tails.tiles[i] += above;
        if (chance == 1) {
            if (x + 1 >= tokens) break;
            continue;
        }
        here *= (tokens - x) / (x + 1) * odds;
        above -= here;
    }
    return tails;
}

/// How likely a token takes an expert, in a few steps from the most to the least liked: the i-th
/// of E has a share in proportion to (i + 1/2)^-alpha. None can be taken more than once.
std::vector<double> chances_of(const RowDraw& draw) {
    const double even = static_cast<double>(draw.top_k) / draw.experts;
    if (draw.alpha == 0) return {even};
    constexpr int kSteps = 16;
    std::vector<double> shares;
    double sum = 0;
    for (int i = 0; i < kSteps; ++i) {
        shares.push_back(portable_exp(-draw.alpha * portable_log((i + 0.5) / kSteps)));
        sum += shares.back();
    }
    for (double& share : shares) share = std::min(1.0, share * kSteps / sum * even);
    return shares;
}

}  // namespace

ExpertRows random_rows(const RowDraw& draw) {
    const auto tokens = static_cast<double>(draw.tokens);
    const double local = static_cast<double>(draw.experts) / draw.ep;
    Tails mean;
    double chance_squares = 0;
    const std::vector<double> chances = chances_of(draw);
    for (const double chance : chances) {
        const Tails one = tails_of(tokens, chance);
        const double part = 1.0 / static_cast<double>(chances.size());
        mean.present += part * one.present;
        for (std::size_t i = 0; i < kTileRows.size(); ++i) mean.tiles[i] += part * one.tiles[i];
        chance_squares += part * chance * chance;
    }
    // A rank's experts are any of them: what they have differs by luck and by how liked they are.
    const double present_variance = std::max(0.0, mean.present * (1 - mean.present));
    const double chance = static_cast<double>(draw.top_k) / draw.experts;
    const double liked = std::max(0.0, chance_squares - chance * chance) * tokens * tokens;
    const double z = largest_of(draw.ep);
    const double mean_rows = tokens * draw.top_k / draw.ep;
    const double mean_experts = local * mean.present;
    const double others = 1 - 1.0 / draw.ep;
    ExpertRows rows;
    rows.experts = std::min(local, mean_experts + z * std::sqrt(local * present_variance));
    rows.rows = mean_rows + z * std::sqrt((mean_rows + local * liked) * others);
    rows.fullest = rows.rows / rows.experts;
    const double more = std::max(rows.experts / mean_experts, rows.rows / mean_rows);
    for (std::size_t i = 0; i < kTileRows.size(); ++i)
        rows.tiles[i] = std::max(rows.experts, local * mean.tiles[i] * more);
    return rows;
}

}  // namespace moehub
