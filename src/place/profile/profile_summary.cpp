#include "base/input_error.hpp"
#include "place/profile/profile_summary_loads.hpp"
#include "place/profile/profile_summary_pairs.hpp"

#include <moehub/profile_summary.hpp>

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

void check_gpus(const Profile& profile, int gpus) {
    if (gpus < 1 || gpus > profile.experts)
        throw input_error("gpus: found {}, allowed: 1 to the {} experts", gpus, profile.experts);
}

int number_of(const Profile& profile, int layer) {
    return profile.layer_numbers.empty() ? layer
                                         : profile.layer_numbers[static_cast<std::size_t>(layer)];
}

/// Tokens that chose an expert in the layer.
std::int64_t active_tokens(const Profile& profile, int layer, double rows) {
    const auto all = static_cast<double>(profile.tokens) * profile.top_k;
    if (rows == all) return profile.tokens;
    std::int64_t active = 0;
    for (std::int64_t token = 0; token < profile.tokens; ++token) {
        const auto chosen = profile.chosen_by(layer, token);
        active += std::any_of(chosen.begin(), chosen.end(),
                              [](std::uint16_t expert) { return expert != Profile::kNobody; });
    }
    return active;
}

using Block = std::span<const double>;

Block layer_of(const std::vector<double>& counts, int layer, int experts) {
    return Block(counts).subspan(
        static_cast<std::size_t>(layer) * static_cast<std::size_t>(experts),
        static_cast<std::size_t>(experts));
}

double rows_of(Block counts) {
    return std::accumulate(counts.begin(), counts.end(), 0.0);
}

/// Where only counts are known, every row counts as drawn on its own.
double rows_per_draw(const Profile& profile, int layer) {
    const double rows = rows_of(profile.counts_of(layer));
    const std::int64_t tokens = active_tokens(profile, layer, rows);
    return tokens > 0 ? std::max(1.0, rows / static_cast<double>(tokens)) : 1;
}

std::optional<LoadDifference> difference_of(Block first, Block second, double per_draw) {
    return load_difference(first, second,
                           {rows_of(first) / per_draw, rows_of(second) / per_draw, per_draw});
}

void add_halves(const Profile& profile, ProfileSummary& summary) {
    const auto halves = block_counts(profile, 2);
    if (halves.size() != 2) return;
    for (int layer = 0; layer < profile.layers; ++layer)
        summary.layers[static_cast<std::size_t>(layer)].halves = difference_of(
            layer_of(halves[0], layer, profile.experts),
            layer_of(halves[1], layer, profile.experts), rows_per_draw(profile, layer));
}

void add_pairs(const Profile& profile, const SummaryOptions& options, ProfileSummary& summary) {
    PairCounter counter(profile, options.most_pairs);
    summary.pair_tokens = counter.tokens();
    const std::vector<int> gpu_of = contiguous_gpus(profile.experts, options.gpus);
    for (int layer = 0; layer < profile.layers; ++layer) {
        LayerSummary& one = summary.layers[static_cast<std::size_t>(layer)];
        if (profile.top_k > 1)
            one.coactivation = coactivation_summary(counter, layer, options.top_pairs);
        if (layer + 1 < profile.layers) one.next = transition_summary(counter, layer, gpu_of);
    }
    if (counter.tokens() < profile.tokens)
        summary.notes.push_back(
            fmt::format("Pairs and transitions are counted in an even sample, {} of {} tokens.",
                        counter.tokens(), profile.tokens));
}

ProfileDifference difference_of(const Profile& first, const Profile& second) {
    ProfileDifference all;
    double correlations = 0;
    int correlated = 0, compared = 0;
    for (int layer = 0; layer < first.layers; ++layer) {
        const double per_draw = std::min(rows_per_draw(first, layer), rows_per_draw(second, layer));
        const auto one = difference_of(first.counts_of(layer), second.counts_of(layer), per_draw);
        if (!one) continue;
        ++compared;
        all.total_variation += one->total_variation;
        all.by_chance += one->by_chance;
        if (one->total_variation > all.worst || compared == 1) {
            all.worst = one->total_variation;
            all.worst_layer = number_of(first, layer);
        }
        if (!one->correlation) continue;
        correlations += *one->correlation;
        ++correlated;
    }
    all.total_variation /= std::max(compared, 1);
    all.by_chance /= std::max(compared, 1);
    if (correlated > 0) all.correlation = correlations / correlated;
    return all;
}

}  // namespace

ProfileSummary summarize(const Profile& profile, const SummaryOptions& options) {
    check_gpus(profile, options.gpus);
    ProfileSummary summary;
    summary.name = profile.name;
    summary.experts = profile.experts;
    summary.top_k = profile.top_k;
    summary.tokens = profile.tokens;
    summary.steps = profile.steps;
    summary.gpus = options.gpus;
    summary.counts = profile.counts;
    for (int layer = 0; layer < profile.layers; ++layer) {
        LayerSummary& one = summary.layers.emplace_back();
        one.number = number_of(profile, layer);
        one.load = load_summary(profile.counts_of(layer), options.gpus);
        if (profile.has_tokens()) one.load.tokens = active_tokens(profile, layer, one.load.rows);
    }
    add_halves(profile, summary);
    if (!profile.has_tokens())
        summary.notes.push_back(
            "Only counts are known: no co-activation, no transitions between layers.");
    else if (!pairs_fit(profile))
        summary.notes.push_back(
            fmt::format("Pairs and transitions are not counted: {} layers of {} experts have too "
                        "many pairs.",
                        profile.layers, profile.experts));
    else
        add_pairs(profile, options, summary);
    return summary;
}

PairMatrices pair_matrices(const Profile& profile, int layer, const SummaryOptions& options) {
    PairMatrices matrices;
    matrices.experts = profile.experts;
    if (layer < 0 || layer >= profile.layers)
        throw input_error("layer: found {}, allowed: 0 to {}", layer, profile.layers - 1);
    if (!profile.has_tokens() || !pairs_fit(profile)) return matrices;
    PairCounter counter(profile, options.most_pairs);
    if (profile.top_k > 1) matrices.lift = coactivation_lift(counter, layer);
    if (layer + 1 < profile.layers) matrices.next = transition_lift(counter, layer);
    return matrices;
}

std::vector<ProfileDifference> differences(const std::vector<Profile>& profiles) {
    check_together(profiles);
    std::vector<ProfileDifference> all;
    for (std::size_t i = 0; i < profiles.size(); ++i)
        for (std::size_t j = i + 1; j < profiles.size(); ++j) {
            ProfileDifference one = difference_of(profiles[i], profiles[j]);
            one.first = i;
            one.second = j;
            all.push_back(one);
        }
    return all;
}

}  // namespace moehub
