#include "place/counts.hpp"

#include <algorithm>
#include <numeric>

namespace moehub {
namespace {

/// Transitions from a layer to the next, [expert × expert of the next layer].
Matrix boundary(const Profile& profile, int layer) {
    Matrix matrix(profile.experts, profile.experts);
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        for (const std::uint16_t from : experts_of(profile, layer, token))
            for (const std::uint16_t to : experts_of(profile, layer + 1, token))
                matrix(from, to) += 1;
    return matrix;
}

}  // namespace

double sum_of(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

double total_weight(const std::vector<Profile>& profiles) {
    double weight = 0;
    for (const Profile& profile : profiles) weight += profile.weight;
    return weight;
}

bool all_have_tokens(const std::vector<Profile>& profiles) {
    return std::ranges::all_of(profiles, &Profile::has_tokens);
}

void add_scaled(Matrix& whole, const Matrix& part, double share) {
    const double total = sum_of(part.at_);
    if (total <= 0) return;
    for (std::size_t cell = 0; cell < whole.at_.size(); ++cell)
        whole.at_[cell] += part.at_[cell] / total * share;
}

Matrix together(const std::vector<Profile>& profiles) {
    const Profile& first = profiles.front();
    Matrix counts(first.layers, first.experts);
    if (profiles.size() == 1) {
        counts.at_ = first.counts;
        return counts;
    }
    for (const Profile& profile : profiles)
        for (int layer = 0; layer < profile.layers; ++layer) {
            const auto row = profile.counts_of(layer);
            const double rows = sum_of(row);
            if (rows <= 0) continue;
            for (int expert = 0; expert < profile.experts; ++expert)
                counts(layer, expert) +=
                    row[at(expert)] / rows * profile.weight / total_weight(profiles);
        }
    return counts;
}

std::vector<Matrix> transitions(const Profile& profile) {
    std::vector<Matrix> all;
    if (!profile.has_tokens()) return all;
    for (int layer = 0; layer + 1 < profile.layers; ++layer)
        all.push_back(boundary(profile, layer));
    return all;
}

std::vector<Matrix> transitions(const std::vector<Profile>& profiles) {
    if (profiles.size() == 1) return transitions(profiles.front());
    std::vector<Matrix> all;
    for (const Profile& profile : profiles) {
        const std::vector<Matrix> own = transitions(profile);
        if (own.empty()) return {};
        if (all.empty()) all.assign(own.size(), Matrix(profile.experts, profile.experts));
        for (std::size_t at = 0; at < own.size(); ++at)
            add_scaled(all[at], own[at], profile.weight / total_weight(profiles));
    }
    return all;
}

LayoutShape shape_of(const Profile& profile) {
    return {profile.layers, profile.experts, profile.layer_numbers, profile.model_layers};
}

}  // namespace moehub
