// Does the joint search keep what it was asked to keep: caps, moves, labels, copies apart; and is
// its layout the same each time?
#include "place/methods.hpp"
#include "place_cases.hpp"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::joint_keeps_test {
namespace {

TEST(JointKeeps, threads_and_repeats_change_nothing) {
    const PlaceInput input{.profiles = {random_profile({2, 6, 2, 60}, 4)}, .gpus = 3};
    for (const std::string objective : {"gpus", "load+gpus+transitions+pair"}) {
        SCOPED_TRACE(objective);
        PlaceOptions options = options_for(objective);
        options.load_cap = 1.3;
        const PlaceResult once = place(input, options);
        options.threads = 2;
        EXPECT_EQ(place(input, options).layout, once.layout);
    }
}

std::vector<std::vector<std::multiset<int>>> held(const ExpertLayout& layout) {
    std::vector<std::vector<std::multiset<int>>> sets;
    for (const auto& layer : layout.on) {
        auto& gpus = sets.emplace_back();
        for (const auto& experts : layer) gpus.emplace_back(experts.begin(), experts.end());
    }
    return sets;
}

TEST(JointKeeps, moves_no_more_than_allowed) {
    Rng rng(5);
    for (const int redundant : {0, 4}) {
        const Profile profile = random_profile({3, 8, 2, 80}, 5);
        const PlaceInput input{.profiles = {profile}, .gpus = 4, .redundant = redundant};
        PlaceOptions options = options_for("gpus+transitions");
        options.load_cap = 1.2;
        options.current = random_layout(profile, 4, redundant, rng);
        const double before = mean_value(input, options, *options.current);
        for (const std::int64_t moves : {0, 1, 7}) {
            SCOPED_TRACE(fmt::format("{} moves, {} copies", moves, redundant));
            options.max_moves = moves;
            const PlaceResult result = place(input, options);
            EXPECT_LE(moved_experts(*options.current, result.layout), moves);
            EXPECT_EQ(result.profiles[0].moved_experts,
                      moved_experts(*options.current, result.layout));
            if (moves < 2) {
                EXPECT_EQ(held(result.layout), held(*options.current));
            }
            if (moves >= 7 && redundant == 0) {
                EXPECT_LT(result.value, before);
            }
        }
    }
}

/// Labels of every layer's GPUs in another order.
ExpertLayout relabelled(const ExpertLayout& layout, bool all_the_same, Rng& rng) {
    ExpertLayout other = layout;
    for (std::size_t layer = 0; layer < layout.on.size(); ++layer) {
        if (!all_the_same)
            rng.shuffle(other.on[layer]);
        else
            std::rotate(other.on[layer].begin(), other.on[layer].begin() + 1,
                        other.on[layer].end());
    }
    return other;
}

/// Expects nothing to move from a layout of the same sets under other labels.
void expect_labels_kept(const std::string& objective, int experts, int gpus, bool all_the_same) {
    Rng rng(6);
    const PlaceInput input{.profiles = {random_profile({3, experts, 2, 80}, 6)}, .gpus = gpus};
    PlaceOptions options = options_for(objective);
    const PlaceResult first = place(input, options);
    options.current = relabelled(first.layout, all_the_same, rng);
    ASSERT_GT(moved_experts(first.layout, *options.current), 0);
    const PlaceResult again = place(input, options);
    EXPECT_EQ(again.profiles[0].moved_experts, 0);
    EXPECT_NEAR(again.value, first.value, 1e-12);
}

TEST(JointKeeps, keeps_labels_near_the_current_layout) {
    expect_labels_kept("gpus", 8, 4, false);
}

TEST(JointKeeps, keeps_labels_near_the_current_layout_along_the_chain) {
    expect_labels_kept("transitions", 6, 3, true);
}

TEST(JointKeeps, weighs_what_moves) {
    const PlaceInput input{.profiles = {random_profile({2, 6, 2, 80}, 7)}, .gpus = 2};
    for (const std::string objective :
         {"gpus+0.5*moved", "gpus+4*transitions+0.5*moved", "transitions+1000*moved"}) {
        SCOPED_TRACE(objective);
        PlaceOptions options = options_for(objective);
        options.current = round_robin_layout({2, 6}, 2);
        EXPECT_NEAR(place(input, options).value, *solve_exact(input, options).bound, 1e-9);
    }
}

TEST(JointKeeps, copies_lower_the_load_and_stay_apart) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        PlaceInput input{.profiles = {random_profile({2, 8, 2, 100}, seed)}, .gpus = 4};
        const double without = place(input, options_for("load")).value;
        for (const std::string objective : {"load", "gpus", "transitions"}) {
            input.redundant = 4 * (1 + static_cast<int>(seed % 3));
            PlaceOptions options = options_for(objective);
            options.time_limit = 0.05;
            if (objective == "load") {
                EXPECT_LE(place(input, options).value, without + 1e-9);
            }
            const ExpertLayout layout = search_jointly(input, options).layout;
            EXPECT_EQ(slots_per_gpu(layout), (8 + input.redundant) / 4);
            for (const auto& layer : held(layout)) {
                std::multiset<int> all;
                for (const auto& experts : layer) all.insert(experts.begin(), experts.end());
                for (int expert = 0; expert < 8; ++expert) {
                    EXPECT_GE(all.count(expert), 1U);
                    if (all.count(expert) > 4) continue;  // more than GPUs
                    for (const auto& experts : layer) EXPECT_LE(experts.count(expert), 1U);
                }
            }
        }
    }
}

TEST(JointKeeps, keeps_the_cap_in_every_block_of_tokens) {
    const PlaceInput input{.profiles = {random_profile({2, 12, 3, 400}, 8)}, .gpus = 3};
    const auto blocks = block_counts(input.profiles[0], 4);
    const auto worst = [&](const ExpertLayout& layout) {
        double most = 0;
        for (const auto& counts : blocks) most = std::max(most, worst_load(counts, layout));
        return most;
    };
    PlaceOptions options = options_for("gpus");
    options.load_cap = 1.08;
    const PlaceResult whole = place(input, options);
    options.load_blocks = 4;
    const PlaceResult blocked = place(input, options);
    ASSERT_GT(worst(whole.layout), 1.08 + 1e-6);  // or blocks are not tested
    EXPECT_TRUE(blocked.notes.empty());
    EXPECT_LE(worst(blocked.layout), 1.08 + 1e-6);
    EXPECT_LE(blocked.profiles[0].load_worst_layer, 1.08 + 1e-6);
    EXPECT_GE(blocked.value, whole.value - 1e-9);
}

TEST(JointKeeps, keeps_the_cap_of_every_profile) {
    const PlaceInput input{
        .profiles = {random_profile({2, 12, 3, 400}, 9), random_profile({2, 12, 2, 100}, 10)},
        .gpus = 3};
    PlaceOptions options = options_for("gpus");
    options.load_cap = 1.1;
    options.time_limit = 0.2;
    const PlaceResult result = place(input, options);
    EXPECT_TRUE(result.notes.empty());
    for (const Evaluation& seen : result.profiles) EXPECT_LE(seen.load_worst_layer, 1.1 + 1e-6);
}

TEST(JointKeeps, says_where_no_layout_keeps_the_cap) {
    Profile profile = random_profile({2, 4, 1, 40, 0}, 11);
    // In layer 1 all tokens choose expert 2.
    for (std::size_t token = 40; token < 80; ++token) profile.chosen[token] = 2;
    count_choices(profile);
    PlaceOptions options = options_for("gpus");
    options.load_cap = 1.3;
    const Solution result = search_jointly({.profiles = {profile}, .gpus = 2}, options);
    ASSERT_EQ(result.notes.size(), 1U);
    EXPECT_EQ(result.notes[0],
              "the load cap 1.3 was not kept in 1 of 2 layers without copies (--replicas); the "
              "highest is 2.000 in layer 1");
}

TEST(JointKeeps, stopped_before_it_begins_gives_a_layout) {
    const PlaceInput input{.profiles = {random_profile({4, 12, 2, 100}, 12)}, .gpus = 4};
    for (const std::string objective : {"gpus", "transitions", "gpus+transitions"}) {
        PlaceOptions options = options_for(objective);
        options.load_cap = 1.3;
        std::stop_source source;
        source.request_stop();
        options.stop = source.get_token();
        const PlaceResult stopped = place(input, options);
        EXPECT_TRUE(stopped.cut_short) << objective;
        EXPECT_EQ(slots_per_gpu(stopped.layout), 3);
        EXPECT_LE(stopped.profiles[0].load_worst_layer, 1.3 + 1e-6);
    }
}

TEST(JointKeeps, tells_how_far_it_is) {
    const PlaceInput input{.profiles = {random_profile({2, 10, 2, 60, 0}, 13)}, .gpus = 5};
    PlaceOptions options = options_for("gpus");
    std::vector<double> shares;
    std::vector<double> values;
    options.progress = [&](double share, double value) {
        shares.push_back(share);
        values.push_back(value);
    };
    const PlaceResult result = place(input, options);
    ASSERT_FALSE(shares.empty());
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_EQ(shares.back(), 1);
    EXPECT_TRUE(std::is_sorted(values.rbegin(), values.rend()));
    EXPECT_NEAR(values.back(), result.value, 0.001 * result.value + 1e-9);
}

TEST(JointKeeps, one_gpu_and_an_expert_to_a_gpu) {
    for (const int gpus : {1, 6}) {
        const PlaceInput input{.profiles = {random_profile({2, 6, 2, 40, 0}, 14)}, .gpus = gpus};
        PlaceOptions options = options_for("load+gpus+transitions+pair+activated");
        options.time_limit = 0.05;
        const PlaceResult result = place(input, options);
        EXPECT_EQ(result.profiles[0].gpus_per_token, gpus == 1 ? 1 : 2);
        EXPECT_GE(result.gap, -1e-9);
    }
}

}  // namespace
}  // namespace moehub::joint_keeps_test
