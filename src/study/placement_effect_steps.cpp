#include "study/placement_effect_steps.hpp"

#include "base/utf8.hpp"

#include <moehub/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

bool is_complete(const Profile& profile, std::int64_t token) {
    for (int layer = 0; layer < profile.layers; ++layer)
        for (const std::uint16_t expert : profile.chosen_by(layer, token))
            if (expert == Profile::kNobody) return false;
    return true;
}

}  // namespace

ProfileSteps::ProfileSteps(const Profile& profile, std::int64_t step_tokens, int most_steps)
    : profile_(profile) {
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        if (is_complete(profile, token)) complete_.push_back(token);
    const auto count = static_cast<std::int64_t>(complete_.size());
    if (count == 0)
        throw InputError(
            fmt::format("{}: tokens: found none with {} experts in every layer, "
                        "allowed: at least one for each GPU",
                        printable(profile.name), profile.top_k));
    incomplete_ = profile.tokens - count;
    tokens_ = std::min(count, step_tokens);
    steps_ = static_cast<int>(std::min<std::int64_t>(most_steps, count / tokens_));
}

Routing ProfileSteps::routing(int layer, int step) const {
    Routing one{profile_.experts, profile_.top_k, 1, tokens_, {}, {}};
    const auto rows = static_cast<std::size_t>(tokens_ * profile_.top_k);
    std::vector<std::uint16_t> all;
    all.reserve(rows);
    for (std::int64_t i = step * tokens_; i < (step + 1) * tokens_; ++i) {
        const auto chosen = profile_.chosen_by(layer, complete_[static_cast<std::size_t>(i)]);
        all.insert(all.end(), chosen.begin(), chosen.end());
    }
    one.chosen = std::move(all);
    one.weights = std::vector<float>(rows, 1.0f / static_cast<float>(profile_.top_k));
    return one;
}

}  // namespace moehub
