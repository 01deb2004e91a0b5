#include "place/items.hpp"

#include <algorithm>
#include <cmath>

namespace moehub {
namespace {

constexpr std::int64_t kWord = 64;

std::int64_t tokens_in_all(const std::vector<Profile>& profiles) {
    std::int64_t tokens = 0;
    for (const Profile& profile : profiles) tokens += profile.tokens;
    return tokens;
}

/// Weight of one token of a profile, so that the profiles count by their weights whatever their
/// lengths: whole numbers, and 1 where there is one profile.
std::vector<int> token_weights(const std::vector<Profile>& profiles,
                               const std::vector<std::int64_t>& picked) {
    if (profiles.size() == 1) return {1};
    constexpr double kFinest = 16;      // of the lightest token: weights are within 3 %
    constexpr double kHeaviest = 4096;  // sums stay far below 2^31
    std::vector<double> exact;
    for (std::size_t at = 0; at < profiles.size(); ++at)
        exact.push_back(profiles[at].weight / static_cast<double>(picked[at]));
    const double least = *std::min_element(exact.begin(), exact.end());
    std::vector<int> weights;
    for (const double weight : exact)
        weights.push_back(
            static_cast<int>(std::lround(std::min(weight / least * kFinest, kHeaviest))));
    return weights;
}

}  // namespace

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
    const std::int64_t all = tokens_in_all(profiles);
    std::vector<std::int64_t> picked;
    for (const Profile& profile : profiles) {
        const std::int64_t share = all <= most ? profile.tokens : profile.tokens * most / all;
        picked.push_back(std::max<std::int64_t>(1, share));
        top_k_ = std::max(top_k_, profile.top_k);
    }
    const std::vector<int> weights = token_weights(profiles, picked);
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
            // The place in the sample, not the token's own number: an even stride through the
            // tokens would send all of them to the same copy.
            const int copy = static_cast<int>(at % static_cast<std::size_t>(items.copies(expert)));
            *out++ = static_cast<std::uint16_t>(items.first[expert] + copy);
        }
    }
}

}  // namespace moehub
