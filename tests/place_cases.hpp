/// Small random profiles and layouts, and plain ways to count what they cost.
#pragma once
#include "base/rng.hpp"

#include <moehub/place.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

namespace moehub {

struct CaseSize {
    int layers = 1;
    int experts = 8;
    int top_k = 2;
    std::int64_t tokens = 60;
    int nobody = 10;  ///< one choice in so many is nobody's; 0: none
};

/// A model all of whose layers have experts; what tokens chose is to be added.
inline Profile empty_profile(const std::string& name, const CaseSize& size) {
    Profile profile;
    profile.name = name;
    profile.layers = profile.model_layers = size.layers;
    profile.experts = size.experts;
    profile.top_k = size.top_k;
    profile.tokens = size.tokens;
    for (int layer = 0; layer < size.layers; ++layer) profile.layer_numbers.push_back(layer);
    return profile;
}

/// Some experts are liked more; half of the tokens take experts near those of the layer before.
inline Profile random_profile(const CaseSize& size, std::uint64_t seed) {
    Rng rng(seed, 77);
    Profile profile = empty_profile("random", size);
    const auto experts = static_cast<std::uint64_t>(size.experts);
    std::vector<std::uint64_t> near(static_cast<std::size_t>(size.tokens));
    for (std::uint64_t& of_token : near) of_token = rng.below(experts);
    for (int layer = 0; layer < size.layers; ++layer)
        for (const std::uint64_t of_token : near) {
            const bool keeps = rng.below(2) == 0;
            std::vector<std::uint16_t> chosen;
            while (static_cast<int>(chosen.size()) < size.top_k) {
                const std::uint64_t any = std::min(rng.below(experts), rng.below(experts));
                const auto expert = static_cast<std::uint16_t>(
                    keeps && rng.below(4) > 0 ? (of_token + any / 2) % experts : any);
                if (std::find(chosen.begin(), chosen.end(), expert) == chosen.end())
                    chosen.push_back(expert);
            }
            for (std::uint16_t& expert : chosen)
                if (size.nobody > 0 && rng.below(static_cast<std::uint64_t>(size.nobody)) == 0)
                    expert = Profile::kNobody;
            profile.chosen.insert(profile.chosen.end(), chosen.begin(), chosen.end());
        }
    count_choices(profile);
    return profile;
}

/// Two random profiles on two GPUs, of which the first weighs more.
inline PlaceInput two_profiles(const CaseSize& first, const CaseSize& second, std::uint64_t seed,
                               double weight) {
    PlaceInput input{.profiles = {random_profile(first, seed), random_profile(second, seed + 50)},
                     .gpus = 2};
    input.profiles[0].weight = weight;
    return input;
}

/// The profile as a file would give it that has counts alone.
inline Profile counts_only(Profile profile) {
    profile.chosen.clear();
    profile.tokens = profile.top_k = 0;
    return profile;
}

/// Every expert once, further copies of any, as many slots on every GPU.
inline ExpertLayout random_layout(const Profile& profile, int gpus, int redundant, Rng& rng) {
    ExpertLayout layout = empty_layout({profile.layers, profile.experts}, gpus);
    const auto experts = static_cast<std::uint64_t>(profile.experts);
    for (auto& layer : layout.on) {
        std::vector<int> slots;
        for (int expert = 0; expert < profile.experts; ++expert) slots.push_back(expert);
        for (int copy = 0; copy < redundant; ++copy)
            slots.push_back(static_cast<int>(rng.below(experts)));
        rng.shuffle(slots);
        for (std::size_t slot = 0; slot < slots.size(); ++slot)
            layer[slot % static_cast<std::size_t>(gpus)].push_back(slots[slot]);
    }
    return layout;
}

/// Tiny problems end by themselves; the clock must not end them, not even under a sanitizer.
inline PlaceOptions options_for(const std::string& objective) {
    PlaceOptions options;
    options.objective = parse_objective(objective);
    options.load_cap = 0;
    options.batch = 8;
    options.time_limit = 100;
    options.threads = 1;
    return options;
}

/// The objective of a layout, weighted mean over the profiles, from evaluate() alone.
inline double mean_value(const PlaceInput& input, const PlaceOptions& options,
                         const ExpertLayout& layout) {
    double sum = 0;
    double weights = 0;
    for (const Profile& profile : input.profiles) {
        const Evaluation seen =
            evaluate(profile, layout,
                     {input.nodes, options.batch, options.current ? &*options.current : nullptr});
        const std::int64_t slots =
            std::int64_t{profile.layers} * (profile.experts + input.redundant);
        sum += profile.weight * value_of(*options.objective, seen, slots);
        weights += profile.weight;
    }
    return sum / weights;
}

/// Calls `visit` with every layout that has each expert once and as many on every GPU.
inline void for_all_layouts(const Profile& profile, int gpus,
                            const std::function<void(const ExpertLayout&)>& visit) {
    ExpertLayout layout = empty_layout({profile.layers, profile.experts}, gpus);
    const auto room = static_cast<std::size_t>(profile.experts / gpus);
    const std::function<void(int)> fill = [&](int next) {
        if (next == profile.layers * profile.experts) return visit(layout);
        for (auto& gpu : layout.on[static_cast<std::size_t>(next / profile.experts)]) {
            if (gpu.size() == room) continue;
            gpu.push_back(next % profile.experts);
            fill(next + 1);
            gpu.pop_back();
        }
    };
    fill(0);
}

/// Busiest GPU over the mean of the counts, in the layer where that is most.
inline double worst_load(const std::vector<double>& counts, const ExpertLayout& layout) {
    double worst = 0;
    for (std::size_t layer = 0; layer < layout.on.size(); ++layer) {
        const double* const row = counts.data() + layer * static_cast<std::size_t>(layout.experts);
        std::vector<double> copies(static_cast<std::size_t>(layout.experts));
        for (const auto& experts : layout.on[layer])
            for (const int expert : experts) copies[static_cast<std::size_t>(expert)] += 1;
        double sum = 0;
        double most = 0;
        for (const auto& experts : layout.on[layer]) {
            double load = 0;
            for (const int expert : experts)
                load += row[expert] / copies[static_cast<std::size_t>(expert)];
            sum += load;
            most = std::max(most, load);
        }
        if (sum > 0) worst = std::max(worst, most * layout.gpus / sum);
    }
    return worst;
}

}  // namespace moehub
