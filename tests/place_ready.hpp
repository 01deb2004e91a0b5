/// What the parts of a search stand on: profiles, a sample of their tokens, items on random GPUs.
#pragma once
#include "place/eplb.hpp"
#include "place/search/items.hpp"
#include "place_cases.hpp"

#include <memory>

namespace moehub {

class Ready {
  public:
    struct Size {
        CaseSize profile;
        int profiles = 1;
        int gpus = 4;
        int redundant = 0;
    };
    Ready(const Size& size, std::uint64_t seed) : gpus(size.gpus), rng(seed, 3) {
        for (int number = 0; number < size.profiles; ++number) {
            CaseSize own = size.profile;
            own.tokens += 37 * number;
            own.top_k = std::max(1, own.top_k - number);
            profiles.push_back(random_profile(own, seed + 1000 * index(number)));
            profiles.back().weight = 1 + 1.5 * number;
        }
        sample = std::make_unique<TokenSample>(profiles, 1000);
        items.reserve(index(size.profile.layers));
        for (int layer = 0; layer < size.profile.layers; ++layer) {
            items.push_back(items_of(copies_of(profiles.front().counts_of(layer),
                                               size.profile.experts + size.redundant)));
            tokens.emplace_back(profiles, *sample, items.back(), layer);
            std::vector<int>& there = item_gpus.emplace_back();
            for (int item = 0; item < items.back().size(); ++item) there.push_back(item % gpus);
            rng.shuffle(there);
        }
    }

    struct Pair {
        int layer, a, b;
    };
    Pair any_pair() {
        const auto layer = static_cast<int>(rng.below(item_gpus.size()));
        const std::uint64_t count = item_gpus[index(layer)].size();
        return {layer, static_cast<int>(rng.below(count)), static_cast<int>(rng.below(count))};
    }
    void swap(const Pair& pair) {
        std::vector<int>& there = item_gpus[index(pair.layer)];
        std::swap(there[index(pair.a)], there[index(pair.b)]);
    }

    static std::size_t index(int value) { return static_cast<std::size_t>(value); }

    int gpus;
    Rng rng;
    std::vector<Profile> profiles;
    std::unique_ptr<TokenSample> sample;
    std::vector<LayerItems> items;
    std::vector<LayerTokens> tokens;
    std::vector<std::vector<int>> item_gpus;  ///< [layer][item]
};

/// Several profiles, nobody, one layer, one GPU, a GPU per expert, copies, one expert.
inline std::vector<Ready::Size> ready_sizes() {
    return {
        {{1, 8, 2, 70}, 1, 4, 0},  {{3, 12, 4, 100}, 1, 3, 0},  {{2, 8, 3, 60}, 2, 4, 4},
        {{3, 9, 2, 130}, 3, 3, 0}, {{2, 8, 2, 64, 0}, 1, 1, 0}, {{2, 6, 6, 40, 2}, 2, 6, 0},
        {{1, 1, 1, 5}, 1, 1, 0},
    };
}

}  // namespace moehub
