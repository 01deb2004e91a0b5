// Loads x of E experts, sum X, mean m = X / E, shares p = x / X.
//   variation  sqrt(Σ (x − m)² / E) / m
//   gini       Σ_i (2 i − E − 1) x_(i) / (E X), x_(1) ≤ … ≤ x_(E)
//   effective  exp(−Σ p ln p)                                   (Hill number of order 1)
// Two samples of n and n' tokens, k experts each, of one source differ in total variation by about
//   ½ Σ sqrt(2 / π) · sqrt(q (1 − q) (1 / n + 1 / n')) / k,  q = k p    (mean of a half normal)
#include "base/input_error.hpp"
#include "base/portable_math.hpp"
#include "place/bounds.hpp"
#include "place/profile/profile_summary_parts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moehub {
namespace {

constexpr double kHalfNormalMean = 0.79788456080286535588;  // sqrt(2 / π)

double sum(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> sorted(std::span<const double> values) {
    std::vector<double> copy(values.begin(), values.end());
    std::sort(copy.begin(), copy.end());
    return copy;
}

double gini_of(std::span<const double> values, double total) {
    const std::vector<double> ascending = sorted(values);
    const auto count = static_cast<double>(ascending.size());
    double weighted = 0;
    for (std::size_t i = 0; i < ascending.size(); ++i)
        weighted += (2 * static_cast<double>(i + 1) - count - 1) * ascending[i];
    return weighted / (count * total);
}

double effective_of(std::span<const double> values, double total) {
    double entropy = 0;
    for (const double value : values)
        if (value > 0) entropy -= value / total * portable_log(value / total);
    return portable_exp(entropy);
}

double contiguous_load(std::span<const double> rows, int gpus, double total) {
    const std::vector<int> gpu_of = contiguous_gpus(static_cast<int>(rows.size()), gpus);
    std::vector<double> load(at(gpus), 0.0);
    for (std::size_t expert = 0; expert < rows.size(); ++expert)
        load[at(gpu_of[expert])] += rows[expert];
    return *std::max_element(load.begin(), load.end()) * gpus / total;
}

std::optional<double> correlation_of(std::span<const double> a, std::span<const double> b) {
    const auto count = static_cast<double>(a.size());
    const double mean_a = sum(a) / count, mean_b = sum(b) / count;
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    // What rounding alone leaves of even loads is no variation.
    constexpr double kEven = 1e-18;
    if (!(aa > kEven * count * mean_a * mean_a) || !(bb > kEven * count * mean_b * mean_b))
        return std::nullopt;
    return std::clamp(ab / (std::sqrt(aa) * std::sqrt(bb)), -1.0, 1.0);
}

void check_gpus(const Profile& profile, int gpus) {
    if (gpus < 1 || gpus > profile.experts)
        throw input_error("gpus: found {}, allowed: 1 to the {} experts", gpus, profile.experts);
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
    return Block(counts).subspan(at(layer) * at(experts), at(experts));
}

double rows_of(Block counts) {
    return std::accumulate(counts.begin(), counts.end(), 0.0);
}

/// Rows per draw; where only counts are known, every row counts as drawn on its own.
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
        summary.layers[at(layer)].halves = difference_of(
            layer_of(halves[0], layer, profile.experts),
            layer_of(halves[1], layer, profile.experts), rows_per_draw(profile, layer));
}

void add_pairs(const Profile& profile, const SummaryOptions& options, ProfileSummary& summary) {
    PairCounter counter(profile, options.most_pairs);
    summary.pair_tokens = counter.tokens();
    const std::vector<int> gpu_of = contiguous_gpus(profile.experts, options.gpus);
    for (int layer = 0; layer < profile.layers; ++layer) {
        LayerSummary& one = summary.layers[at(layer)];
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

std::vector<int> contiguous_gpus(int experts, int gpus) {
    std::vector<int> gpu_of;
    for (int gpu = 0; gpu < gpus; ++gpu)
        gpu_of.insert(gpu_of.end(), at(experts / gpus + (gpu < experts % gpus ? 1 : 0)), gpu);
    return gpu_of;
}

LoadSummary load_summary(std::span<const double> rows_of_expert, int gpus) {
    LoadSummary load;
    load.rows = sum(rows_of_expert);
    load.never_chosen =
        static_cast<int>(std::count(rows_of_expert.begin(), rows_of_expert.end(), 0.0));
    if (!(load.rows > 0)) return load;
    const auto experts = static_cast<double>(rows_of_expert.size());
    const auto busiest = std::max_element(rows_of_expert.begin(), rows_of_expert.end());
    load.mean = load.rows / experts;
    load.largest = *busiest;
    load.busiest = static_cast<int>(busiest - rows_of_expert.begin());
    load.largest_over_mean = load.largest / load.mean;
    load.busiest_share = load.largest / load.rows;
    double squares = 0;
    for (const double rows : rows_of_expert) squares += (rows - load.mean) * (rows - load.mean);
    load.variation = std::sqrt(squares / experts) / load.mean;
    load.gini = gini_of(rows_of_expert, load.rows);
    load.effective_experts = effective_of(rows_of_expert, load.rows);
    load.largest_over_gpu = load.largest * gpus / load.rows;
    load.gpu_bound = load_bound(rows_of_expert, gpus);
    load.gpu_contiguous = contiguous_load(rows_of_expert, gpus, load.rows);
    return load;
}

std::optional<LoadDifference> load_difference(std::span<const double> first,
                                              std::span<const double> second, const Draws& draws) {
    const double first_total = sum(first), second_total = sum(second);
    if (!(first_total > 0) || !(second_total > 0)) return std::nullopt;
    LoadDifference difference;
    const double spread = 1 / draws.first + 1 / draws.second;
    for (std::size_t i = 0; i < first.size(); ++i) {
        const double a = first[i] / first_total, b = second[i] / second_total;
        difference.total_variation += std::abs(a - b) / 2;
        const double chosen =
            std::min(1.0, draws.per_draw * (first[i] + second[i]) / (first_total + second_total));
        difference.by_chance +=
            kHalfNormalMean / 2 * std::sqrt(chosen * (1 - chosen) * spread) / draws.per_draw;
    }
    difference.correlation = correlation_of(first, second);
    return difference;
}

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
        summary.notes.push_back(fmt::format(
            "Pairs and transitions are not counted: {} layers of {} experts have too many pairs.",
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
