// Does the joint search find the optimum where it is known?
#include "place/methods.hpp"
#include "place_cases.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::joint_test {
namespace {

#ifdef MOEHUB_SANITIZED
constexpr int kSeeds = 1;
#else
constexpr int kSeeds = 100;
#endif

struct SmallCase {
    int layers, experts, gpus, nodes;
    const char* objective;
    double cap;
    int seeds;
};

struct Tally {
    int cases = 0;
    int missed = 0;
    int no_layout = 0;  ///< within the cap
    std::string misses;
};

/// What the search finds, the exact method and EPLB not asked.
PlaceResult searched(const PlaceInput& input, const PlaceOptions& options) {
    PlaceResult result = place(input, options);  // checks the options, and has the bound
    const Solution found = search_jointly(input, options);
    const EvaluateOptions how{input.nodes, options.batch, nullptr};
    double weights = 0;
    result.value = 0;
    for (const Profile& profile : input.profiles) {
        weights += profile.weight;
        result.value +=
            profile.weight * value_of(result.objective, evaluate(profile, found.layout, how), 1);
    }
    result.value /= weights;
    result.layout = found.layout;
    result.cut_short = found.cut_short;
    result.notes = found.notes;
    return result;
}

/// The profile of a case; seeds also differ in tokens, experts a token and nobody's choices.
PlaceInput input_of(const SmallCase& small, std::uint64_t seed) {
    const CaseSize size{small.layers, small.experts, 2 + static_cast<int>(seed % 2),
                        40 + 40 * static_cast<std::int64_t>(seed % 5), seed % 3 == 0 ? 10 : 0};
    return {.profiles = {random_profile(size, seed)}, .gpus = small.gpus, .nodes = small.nodes};
}

void compare(const SmallCase& small, std::uint64_t seed, Tally& tally) {
    const std::string name = fmt::format(
        "seed {}: {} layers, {} experts, {} GPUs on {} nodes, {}, cap {}", seed, small.layers,
        small.experts, small.gpus, small.nodes, small.objective, small.cap);
    const PlaceInput input = input_of(small, seed);
    PlaceOptions options = options_for(small.objective);
    options.load_cap = small.cap;
    const Solution exact = solve_exact(input, options);
    const PlaceResult joint = searched(input, options);
    EXPECT_FALSE(joint.cut_short) << name;
    ++tally.cases;
    if (!exact.notes.empty()) {  // then how far above the cap is up to each
        EXPECT_FALSE(joint.notes.empty()) << name;
        ++tally.no_layout;
        return;
    }
    const double best = *exact.bound;
    EXPECT_TRUE(joint.notes.empty()) << name;
    EXPECT_GE(joint.value, best - 1e-9) << name;
    EXPECT_LE(joint.value, best * 1.01) << name;
    EXPECT_LE(joint.bound, best + 1e-9) << name;
    if (joint.value <= best + 1e-9) return;
    ++tally.missed;
    tally.misses += fmt::format("{}: {:.6f}, best {:.6f}\n", name, joint.value, best);
}

TEST(Joint, finds_the_optimum_of_small_cases) {
    const SmallCase cases[] = {
        {1, 12, 2, 1, "gpus", 1.06, 8},
        {1, 8, 4, 1, "gpus", 1.2, 8},
        {2, 9, 3, 1, "gpus", 0, 4},
        {1, 12, 3, 1, "gpus", 1.06, 3},
        {3, 6, 2, 1, "transitions", 0, 6},
        {2, 8, 2, 1, "transitions", 1.06, 3},
        {2, 8, 4, 1, "transitions", 1.2, 2},
        {5, 6, 3, 1, "transitions", 0, 1},
        {2, 8, 2, 1, "gpus+2*transitions", 1.06, 4},
        {3, 6, 3, 1, "gpus+2*transitions", 1.2, 3},
        {5, 6, 2, 1, "gpus+2*transitions", 0, 1},
        {3, 8, 4, 1, "load", 0, 16},
        {2, 12, 2, 1, "load", 0, 14},
        {1, 9, 3, 1, "load", 1.06, 8},
        {1, 8, 4, 2, "gpus+4*nodes", 1.2, 8},
        {2, 6, 2, 2, "nodes+3*node-transitions", 0, 3},
        {2, 8, 4, 2, "gpus+4*nodes+2*transitions+4*node-transitions", 1.2, 2},
        {1, 8, 2, 1, "activated", 1.2, 4},
        {1, 8, 4, 1, "0.3*load+gpus+0.2*activated", 0, 4},
    };
    Tally tally;
    std::uint64_t seed = 0;
    for (const SmallCase& small : cases) {
        ++seed;
        for (int number = 0; number < std::min(small.seeds, kSeeds); ++number)
            compare(small, seed + static_cast<std::uint64_t>(100 * number), tally);
    }
    EXPECT_LE(tally.no_layout, tally.cases / 10);  // or caps are hardly tested
    EXPECT_LE(tally.missed, std::max(1, tally.cases / 20)) << tally.misses;
}

TEST(Joint, finds_the_optimum_over_several_profiles) {
    for (const std::string objective : {"gpus", "transitions", "load", "gpus+2*transitions"}) {
        SCOPED_TRACE(objective);
        PlaceInput input{
            .profiles = {random_profile({2, 8, 2, 60, 0}, 1), random_profile({2, 8, 2, 90, 0}, 2)},
            .gpus = 2};
        input.profiles[0].weight = 3;
        const PlaceOptions options = options_for(objective);
        const PlaceResult joint = searched(input, options);
        EXPECT_NEAR(joint.value, mean_value(input, options, joint.layout), 1e-12);
        const double best = *solve_exact(input, options).bound;
        EXPECT_GE(joint.value, best - 1e-9);
        EXPECT_LE(joint.value, best * 1.002);  // tokens' weights are whole numbers
    }
}

TEST(Joint, weighs_profiles_by_weight_whatever_their_top_k) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const PlaceInput input = two_profiles({2, 6, 1, 60, 0}, {2, 6, 4, 90, 0}, seed, 4);
        const PlaceOptions options = options_for("transitions");
        EXPECT_LE(place(input, options).value, *solve_exact(input, options).bound * 1.01);
    }
}

TEST(Joint, finds_the_layout_whose_worst_profile_is_best) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const PlaceInput input = two_profiles({1, 6, 2, 60, 0}, {1, 6, 2, 90, 0}, seed, 5);
        const auto worst = [&](const ExpertLayout& layout) {
            return std::max(evaluate(input.profiles[0], layout).gpus_per_token,
                            evaluate(input.profiles[1], layout).gpus_per_token);
        };
        double least = 2;
        for_all_layouts(input.profiles[0], 2, [&](const ExpertLayout& layout) {
            least = std::min(least, worst(layout));
        });
        PlaceOptions options = options_for("gpus");
        const double of_mean = worst(place(input, options).layout);
        options.worst_profile = true;
        const PlaceResult result = place(input, options);
        EXPECT_DOUBLE_EQ(result.value, worst(result.layout));
        EXPECT_LE(result.value, of_mean + 1e-9);
        EXPECT_LE(result.value, least * 1.02);  // weights step by step, not every layout
        EXPECT_LE(result.bound, least + 1e-9);
    }
}

TEST(Joint, places_counts_alone_by_load) {
    const PlaceInput input{.profiles = {counts_only(random_profile({3, 8, 2, 90}, 3))}, .gpus = 4};
    PlaceOptions options = options_for("load");
    options.objective.reset();
    const PlaceResult joint = searched(input, options);
    EXPECT_EQ(to_string(joint.objective), "load");
    EXPECT_NEAR(joint.value, *solve_exact(input, options_for("load")).bound, 1e-9);
}

}  // namespace
}  // namespace moehub::joint_test
