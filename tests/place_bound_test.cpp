// Is no layout below the lower bounds? Against all layouts there are, where those can be counted.
#include "place/bounds.hpp"
#include "place/profile/profile_summary_parts.hpp"
#include "place_cases.hpp"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace moehub::place_bound_test {
namespace {

using Part = double Evaluation::*;
constexpr Part kParts[] = {
    &Evaluation::load_max_over_mean,     &Evaluation::gpus_per_token,
    &Evaluation::nodes_per_token,        &Evaluation::off_gpu_transitions,
    &Evaluation::off_node_transitions,   &Evaluation::heaviest_pair,
    &Evaluation::heaviest_pair_by_layer, &Evaluation::activated_max_over_mean};

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Weighted mean over the profiles.
Evaluation mean_over(const PlaceInput& input, const PlaceOptions& options,
                     const ExpertLayout& layout) {
    Evaluation mean;
    double weights = 0;
    for (const Profile& profile : input.profiles) weights += profile.weight;
    for (const Profile& profile : input.profiles) {
        const Evaluation own = evaluate(profile, layout, {input.nodes, options.batch, nullptr});
        for (const Part part : kParts) mean.*part += profile.weight / weights * own.*part;
    }
    return mean;
}

bool within_cap(const PlaceInput& input, double cap, const ExpertLayout& layout) {
    return cap == 0 ||
           std::all_of(input.profiles.begin(), input.profiles.end(), [&](const Profile& profile) {
               return worst_load(profile.counts, layout) <= cap + 1e-9;
           });
}

/// The least of each part over all layouts within the cap.
Evaluation least_of_all(const PlaceInput& input, const PlaceOptions& options,
                        std::optional<ExpertLayout>& some) {
    Evaluation least;
    for (const Part part : kParts) least.*part = kNever;
    for_all_layouts(input.profiles.front(), input.gpus, [&](const ExpertLayout& layout) {
        if (!within_cap(input, options.load_cap, layout)) return;
        some = layout;
        const Evaluation own = mean_over(input, options, layout);
        for (const Part part : kParts) least.*part = std::min(least.*part, own.*part);
    });
    return least;
}

void expect_below_all(const PlaceInput& input, double cap, int& counted) {
    PlaceOptions options;
    options.load_cap = cap;
    options.batch = 8;
    options.threads = 1;
    std::optional<ExpertLayout> some;
    const Evaluation least = least_of_all(input, options, some);
    if (!some) return;
    ++counted;
    const Evaluation bounds = lower_bounds(input, options, *some);
    for (std::size_t part = 0; part < std::size(kParts); ++part)
        EXPECT_LE(bounds.*kParts[part], least.*kParts[part] + 1e-9) << "part " << part;
}

TEST(Bound, no_layout_is_below) {
    struct Shape {
        int layers, experts, gpus, nodes;
    };
    int counted = 0;
    for (const Shape& shape : {Shape{2, 6, 2, 1}, {2, 4, 4, 2}, {3, 4, 2, 2}, {1, 6, 3, 1}})
        for (std::uint64_t seed = 1; seed <= 3; ++seed)
            for (const double cap : {0.0, 1.1, 1.3}) {
                SCOPED_TRACE("seed " + std::to_string(seed) + ", cap " + std::to_string(cap) +
                             ", GPUs " + std::to_string(shape.gpus));
                const int top_k = 2 + static_cast<int>(seed % 2);
                const PlaceInput input{
                    .profiles = {random_profile({shape.layers, shape.experts, top_k, 30, 0}, seed)},
                    .gpus = shape.gpus,
                    .nodes = shape.nodes};
                expect_below_all(input, cap, counted);
            }
    EXPECT_GT(counted, 24);
}

TEST(Bound, no_layout_is_below_with_several_profiles) {
    int counted = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const PlaceInput input = two_profiles({2, 6, 2, 30, 0}, {2, 6, 3, 20, 0}, seed, 2.5);
        expect_below_all(input, seed % 2 == 0 ? 1.4 : 0, counted);
    }
    EXPECT_GE(counted, 2);
}

TEST(Bound, no_layout_is_below_with_nobody) {
    int counted = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const PlaceInput input{.profiles = {random_profile({3, 4, 2, 12, 3}, seed)}, .gpus = 2};
        expect_below_all(input, 0, counted);
    }
    EXPECT_EQ(counted, 6);
}

// Boundaries of few transitions weigh as much as others in the mean over boundaries.
TEST(Bound, heaviest_pair_by_layer_with_a_boundary_of_few_transitions) {
    Profile profile = random_profile({3, 2, 2, 20, 0}, 1);
    // Layers 0 and 1: everyone takes both experts, so half of all leave. Layer 2: one token alone
    // goes on, and can stay where it was with its first expert.
    for (std::int64_t token = 0; token < profile.tokens; ++token)
        for (int slot = 0; slot < 2; ++slot) {
            const auto at = [&](int layer) {
                return static_cast<std::size_t>((layer * profile.tokens + token) * 2 + slot);
            };
            const bool only = token == 0 && slot == 1;
            profile.chosen[at(1)] = only ? Profile::kNobody : profile.chosen[at(1)];
            profile.chosen[at(2)] =
                token == 0 && slot == 0 ? profile.chosen[at(1)] : Profile::kNobody;
        }
    count_choices(profile);
    int counted = 0;
    expect_below_all({.profiles = {profile}, .gpus = 2}, 0, counted);
    EXPECT_EQ(counted, 1);
}

/// Calls with all layouts of `slots` slots a layer that hold every expert of every layer.
void for_all_with_copies(const Profile& profile, int gpus, int slots,
                         const std::function<void(const ExpertLayout&)>& visit) {
    std::vector<int> expert(static_cast<std::size_t>(slots * profile.layers));
    std::size_t slot = 0;
    while (slot < expert.size()) {
        ExpertLayout layout = empty_layout({profile.layers, profile.experts}, gpus);
        std::set<std::pair<int, int>> there;
        for (int at = 0; at < slots * profile.layers; ++at) {
            const int held = expert[static_cast<std::size_t>(at)];
            const auto gpu = static_cast<std::size_t>(at % slots / (slots / gpus));
            layout.on[static_cast<std::size_t>(at / slots)][gpu].push_back(held);
            there.insert({at / slots, held});
        }
        if (static_cast<int>(there.size()) == profile.layers * profile.experts) visit(layout);
        slot = 0;
        while (slot < expert.size() && ++expert[slot] == profile.experts) expert[slot++] = 0;
    }
}

std::vector<int> copies_in(const ExpertLayout& layout) {
    std::vector<int> copies(static_cast<std::size_t>(layout.layers() * layout.experts));
    for (int layer = 0; layer < layout.layers(); ++layer)
        for (const auto& experts : layout.on[static_cast<std::size_t>(layer)])
            for (const int expert : experts)
                ++copies[static_cast<std::size_t>(layer * layout.experts + expert)];
    return copies;
}

TEST(Bound, no_layout_with_the_same_copies_is_below) {
    struct Shape {
        int layers, experts, gpus, redundant;
    };
    for (const Shape& shape : {Shape{1, 4, 2, 2}, {2, 3, 2, 1}, {1, 4, 3, 2}})
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed) + ", GPUs " + std::to_string(shape.gpus));
            const Profile profile =
                random_profile({shape.layers, shape.experts, 2, 15, 0}, seed + 20);
            const PlaceInput input{
                .profiles = {profile}, .gpus = shape.gpus, .redundant = shape.redundant};
            PlaceOptions options;
            options.load_cap = 0;
            options.threads = 1;
            struct Least {
                ExpertLayout layout;
                Evaluation parts;
            };
            std::map<std::vector<int>, Least> all;
            for_all_with_copies(
                profile, shape.gpus, shape.experts + shape.redundant,
                [&](const ExpertLayout& layout) {
                    const Evaluation own = mean_over(input, options, layout);
                    Least& least =
                        all.try_emplace(copies_in(layout), Least{layout, own}).first->second;
                    for (const Part part : kParts)
                        least.parts.*part = std::min(least.parts.*part, own.*part);
                });
            EXPECT_GT(all.size(), 3U);
            for (const auto& [copies, least] : all) {
                const Evaluation bounds = lower_bounds(input, options, least.layout);
                for (std::size_t part = 0; part < std::size(kParts); ++part)
                    EXPECT_LE(bounds.*kParts[part], least.parts.*kParts[part] + 1e-9)
                        << "part " << part;
            }
        }
}

TEST(Bound, of_a_sum_is_the_sum) {
    const Evaluation bounds{.load_max_over_mean = 1.5, .gpus_per_token = 2};
    EXPECT_EQ(value_of({.load = 2, .gpus = 3}, bounds, 1), 9);
}

TEST(Bound, is_reached_where_all_is_certain) {
    const Profile profile = random_profile({2, 4, 2, 30, 0}, 1);
    const PlaceInput alone{.profiles = {profile}, .gpus = 1};
    const Evaluation one = lower_bounds(alone, {}, contiguous_layout({2, 4}, 1));
    EXPECT_EQ(one.gpus_per_token, 1);
    EXPECT_EQ(one.load_max_over_mean, 1);
    EXPECT_NEAR(one.off_gpu_transitions, 0, 1e-9);
    // An expert to a GPU: every token goes to as many GPUs as it has experts.
    const PlaceInput apart{.profiles = {profile}, .gpus = 4};
    const ExpertLayout layout = contiguous_layout({2, 4}, 4);
    const Evaluation four = lower_bounds(apart, {}, layout);
    EXPECT_NEAR(four.gpus_per_token, 2, 1e-9);
    EXPECT_NEAR(four.load_max_over_mean, evaluate(profile, layout).load_max_over_mean, 1e-9);
}

TEST(Bound, of_the_load_is_the_one_that_a_profile_shows) {
    // Three that are alike on two GPUs: two of them meet, with others or not.
    Profile profile;
    profile.layers = profile.model_layers = 1;
    profile.experts = 6;
    profile.layer_numbers = {0};
    profile.counts = {10, 10, 10, 0, 0, 0};
    const PlaceInput input{.profiles = {profile}, .gpus = 2};
    const double shown = load_summary(profile.counts_of(0), 2).gpu_bound;
    EXPECT_NEAR(shown, 20 / 15., 1e-12);
    EXPECT_EQ(lower_bounds(input, {}, contiguous_layout({1, 6}, 2)).load_max_over_mean, shown);
}

TEST(Bound, of_the_load_is_nearly_reached_on_large_layers) {
    Rng rng(4);
    Profile profile;
    profile.name = "large";
    profile.layers = profile.model_layers = 10;
    profile.experts = 64;
    for (int layer = 0; layer < 10; ++layer) profile.layer_numbers.push_back(layer);
    for (int count = 0; count < 640; ++count)
        profile.counts.push_back(std::floor(1000 * std::exp(0.5 * rng.normal())));
    PlaceOptions options;
    options.load_cap = 0;
    options.threads = 1;
    const PlaceResult result = place({.profiles = {profile}, .gpus = 8}, options);
    EXPECT_EQ(to_string(result.objective), "load");
    EXPECT_GE(result.gap, 0);
    EXPECT_LT(result.gap, 0.001);
}

/// The largest sum of exactly `count` gains within the budget, by looking at all.
double most_by_looking(const std::vector<double>& gains, const std::vector<double>& loads,
                       const PartnerLimits& limits) {
    double most = -kNever;
    for (unsigned set = 0; set < 1U << gains.size(); ++set) {
        double gain = 0;
        double load = 0;
        int count = 0;
        for (std::size_t at = 0; at < gains.size(); ++at)
            if (set >> at & 1) {
                gain += gains[at];
                load += loads[at];
                ++count;
            }
        if (count == limits.count && load <= limits.budget) most = std::max(most, gain);
    }
    return most;
}

TEST(MostGain, is_at_least_the_largest_and_not_far_above) {
    Rng rng(6);
    double above = 0;
    int counted = 0;
    for (int trial = 0; trial < 300; ++trial) {
        std::vector<double> gains;
        std::vector<double> loads;
        for (int at = 0; at < 8; ++at) {
            gains.push_back(static_cast<double>(rng.below(20)));
            loads.push_back(static_cast<double>(rng.below(30)));
        }
        const PartnerLimits limits{static_cast<int>(rng.below(9)),
                                   trial % 5 == 0 ? kNever : static_cast<double>(rng.below(120))};
        const double most = most_by_looking(gains, loads, limits);
        const double bound = most_gain(gains, loads, limits);
        EXPECT_GE(bound, most - 1e-9) << "trial " << trial;
        if (limits.budget == kNever) {
            EXPECT_NEAR(bound, most, 1e-9);
        }
        if (most <= 0) continue;
        above += bound / most - 1;
        ++counted;
    }
    EXPECT_LT(above / counted, 0.05);
}

}  // namespace
}  // namespace moehub::place_bound_test
