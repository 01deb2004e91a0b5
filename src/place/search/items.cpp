#include "place/search/items.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr std::int64_t kWord = 64;

/// Tokens of each profile: all where there are few, else by the profiles' weights; what a short one
/// leaves goes to the others.
std::vector<std::int64_t> tokens_picked(const std::vector<Profile>& profiles, std::int64_t most) {
    std::vector<std::int64_t> picked(profiles.size());
    std::vector<bool> whole(profiles.size());
    for (bool again = true; again;) {
        again = false;
        double weights = 0;
        std::int64_t left = most;
        for (std::size_t at = 0; at < profiles.size(); ++at) {
            if (whole[at])
                left -= picked[at];
            else
                weights += profiles[at].weight;
        }
        for (std::size_t at = 0; at < profiles.size(); ++at) {
            if (whole[at]) continue;
            const double share = static_cast<double>(left) * profiles[at].weight / weights;
            picked[at] =
                std::clamp<std::int64_t>(static_cast<std::int64_t>(share), 1, profiles[at].tokens);
            if (share < static_cast<double>(profiles[at].tokens)) continue;
            whole[at] = again = true;
        }
    }
    return picked;
}

}  // namespace

std::vector<int> whole_weights(const std::vector<double>& weights, double rows) {
    if (weights.size() == 1) return {1};
    constexpr double kFinest = 16;  // weight of the lightest profile: within 3 %
    const double heaviest = std::max(1.0, 0x1p30 / std::max(rows, 1.0));
    const double least = *std::min_element(weights.begin(), weights.end());
    std::vector<int> whole;
    for (const double weight : weights)
        whole.push_back(static_cast<int>(
            std::max(1.0, std::floor(std::min(weight / least * kFinest, heaviest) + 0.5))));
    return whole;
}

LayerItems items_of(const std::vector<int>& copies) {
    LayerItems items;
    items.first.push_back(0);
    for (std::size_t expert = 0; expert < copies.size(); ++expert) {
        for (int copy = 0; copy < copies[expert]; ++copy)
            items.expert.push_back(static_cast<int>(expert));
        items.first.push_back(items.size());
    }
    return items;
}

TokenSample::TokenSample(const std::vector<Profile>& profiles, std::int64_t most) {
    const std::vector<std::int64_t> picked = tokens_picked(profiles, most);
    for (const Profile& profile : profiles) top_k_ = std::max(top_k_, profile.top_k);
    // So that profiles count by their weights whatever their lengths.
    std::vector<double> exact;
    for (std::size_t at = 0; at < profiles.size(); ++at) {
        profile_weights_.push_back(profiles[at].weight);
        exact.push_back(profiles[at].weight / static_cast<double>(picked[at]));
    }
    const std::vector<int> weights = whole_weights(exact, static_cast<double>(most) * top_k_);
    for (std::size_t at = 0; at < profiles.size(); ++at) {
        for (std::int64_t pick = 0; pick < picked[at]; ++pick)
            tokens_.push_back({static_cast<int>(at), pick * profiles[at].tokens / picked[at]});
        while (tokens_.size() % kWord != 0) tokens_.push_back({});
        weights_.resize(tokens_.size() / kWord, weights[at]);
        total_weight_ += picked[at] * weights[at];
    }
}

LayerTokens::LayerTokens(const std::vector<Profile>& profiles, const TokenSample& sample,
                         const LayerItems& items, int layer)
    : sample_(&sample),
      top_k_(static_cast<std::size_t>(sample.top_k())),
      nobody_(static_cast<std::uint16_t>(items.size())),
      chosen_(sample.tokens().size() * top_k_, nobody_) {
    for (std::size_t at = 0; at < sample.tokens().size(); ++at) {
        const TokenSample::Token& token = sample.tokens()[at];
        if (token.profile < 0) continue;
        const Profile& profile = profiles[static_cast<std::size_t>(token.profile)];
        std::uint16_t* out = chosen_.data() + at * top_k_;
        for (const std::uint16_t expert : profile.chosen_by(layer, token.token)) {
            if (expert == Profile::kNobody) continue;
            // The number in the sample, not the token's own number: an even stride through the
            // tokens would send all of them to the same copy.
            const int copy = static_cast<int>(at % static_cast<std::size_t>(items.copies(expert)));
            *out++ = static_cast<std::uint16_t>(items.first[expert] + copy);
        }
    }
}

}  // namespace moehub
