/// A profile with a structure that a placement can find: every token has a topic, and in every
/// layer it mostly takes the experts of that topic, which lie far apart.
#pragma once
#include "base/rng.hpp"
#include "place_cases.hpp"
#include "recorded_files.hpp"

#include <moehub/profile.hpp>

namespace moehub {

struct TopicSizes {
    int layers = 3;
    int experts = 8;
    int topics = 4;  ///< expert e is of topic e mod topics; a divisor of experts
    int tokens = 400;
    int stray = 8;  ///< one token in so many takes any experts
};

/// Top-2. Topics are equally frequent.
inline Profile topic_profile(const TopicSizes& sizes, std::uint64_t seed) {
    Rng rng(seed, 0);
    Profile profile = empty_profile("topics", {sizes.layers, sizes.experts, 2, sizes.tokens});
    const auto below = [&rng](int count) {
        return static_cast<int>(rng.below(static_cast<std::uint64_t>(count)));
    };
    for (int layer = 0; layer < sizes.layers; ++layer) {
        for (int token = 0; token < sizes.tokens; ++token) {
            const bool stray = below(sizes.stray) == 0;
            const int step = stray ? 1 : sizes.topics;
            const int start = stray ? 0 : token % sizes.topics;
            const int count = (sizes.experts - start + step - 1) / step;
            const int first = below(count);
            const int second = (first + 1 + below(count - 1)) % count;
            profile.chosen.push_back(static_cast<std::uint16_t>(start + first * step));
            profile.chosen.push_back(static_cast<std::uint16_t>(start + second * step));
        }
    }
    count_choices(profile);
    return profile;
}

/// The profile as a .npy file, [token, layer, k].
inline std::string npy_of(const Profile& profile) {
    std::vector<std::int32_t> ids;
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        for (int layer = 0; layer < profile.layers; ++layer)
            for (const std::uint16_t expert : profile.chosen_by(layer, token))
                ids.push_back(expert);
    return npy("<i4",
               "(" + std::to_string(profile.tokens) + ", " + std::to_string(profile.layers) + ", " +
                   std::to_string(profile.top_k) + ")",
               bytes_of(ids));
}

}  // namespace moehub
