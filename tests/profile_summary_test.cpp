// Is recorded routing summed up rightly? Closed forms, brute force, and what is known of real
// routing.
#include "place/bounds.hpp"
#include "place/counts.hpp"
#include "place/profile/profile_summary_parts.hpp"

#include <moehub/error.hpp>
#include <moehub/profile_summary.hpp>
#include <moehub/routing.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::profile_summary_test {
namespace {

struct Shape {
    int layers;
    int experts;
    int top_k;
};

/// `choose(layer, token, slot)` gives the expert.
template <class Choose>
Profile made(const Shape& shape, std::int64_t tokens, Choose choose) {
    Profile profile;
    profile.name = "made";
    profile.layers = shape.layers;
    profile.experts = shape.experts;
    profile.top_k = shape.top_k;
    profile.tokens = tokens;
    for (int layer = 0; layer < shape.layers; ++layer) {
        profile.layer_numbers.push_back(layer);
        for (std::int64_t token = 0; token < tokens; ++token)
            for (int slot = 0; slot < shape.top_k; ++slot)
                profile.chosen.push_back(static_cast<std::uint16_t>(choose(layer, token, slot)));
    }
    profile.model_layers = shape.layers;
    count_choices(profile);
    return profile;
}

Profile drawn(const std::string& spec, const Shape& shape, std::int64_t tokens,
              std::uint64_t seed = 1) {
    Model model;
    model.experts = shape.experts;
    model.top_k = shape.top_k;
    RoutingSpec parsed = parse_routing(spec);
    parsed.seed = seed;
    const Routing routing = make_routing(parsed, model, tokens, shape.layers);
    return made(shape, tokens, [&](int layer, std::int64_t token, int slot) {
        return routing.chosen_by(layer, token)[static_cast<std::size_t>(slot)];
    });
}

Profile counted(int experts, std::vector<double> counts) {
    Profile profile;
    profile.name = "counted";
    profile.experts = experts;
    profile.layers = static_cast<int>(counts.size()) / experts;
    profile.counts = std::move(counts);
    for (int layer = 0; layer < profile.layers; ++layer) profile.layer_numbers.push_back(layer);
    return profile;
}

TEST(ProfileLoads, the_figures_are_their_closed_forms) {
    const std::vector<double> rows{4, 2, 1, 1};
    const LoadSummary load = load_summary(rows, 2);
    EXPECT_EQ(load.rows, 8);
    EXPECT_EQ(load.mean, 2);
    EXPECT_EQ(load.busiest, 0);
    EXPECT_EQ(load.largest_over_mean, 2);
    EXPECT_EQ(load.busiest_share, 0.5);
    EXPECT_DOUBLE_EQ(load.variation, std::sqrt(1.5) / 2);
    EXPECT_DOUBLE_EQ(load.gini, 10.0 / 32);
    EXPECT_NEAR(load.effective_experts, std::pow(2, 1.75), 1e-12);
    EXPECT_EQ(load.never_chosen, 0);
    EXPECT_EQ(load.largest_over_gpu, 1);
    EXPECT_EQ(load.gpu_contiguous, 1.5);
    EXPECT_EQ(load.gpu_bound, 1.25);  // 4 with the smallest, against 4 on average
}

TEST(ProfileLoads, an_even_layer_is_even_and_an_empty_one_zero) {
    const LoadSummary even = load_summary(std::vector<double>(12, 7.0), 4);
    EXPECT_EQ(even.variation, 0);
    EXPECT_NEAR(even.gini, 0, 1e-15);
    EXPECT_NEAR(even.effective_experts, 12, 1e-12);
    EXPECT_EQ(even.gpu_bound, 1);
    const LoadSummary empty = load_summary(std::vector<double>(4, 0.0), 4);
    EXPECT_EQ(empty.never_chosen, 4);
    for (const double value : {empty.mean, empty.gini, empty.variation, empty.effective_experts,
                               empty.gpu_bound, empty.gpu_contiguous, empty.largest_over_mean})
        EXPECT_EQ(value, 0);
}

/// The busiest GPU's rows at best, every GPU with experts / gpus of them.
double best_of(const std::vector<double>& rows, int gpus) {
    std::vector<int> gpu_of = contiguous_gpus(static_cast<int>(rows.size()), gpus);
    double best = std::accumulate(rows.begin(), rows.end(), 0.0);
    do {
        std::vector<double> load(static_cast<std::size_t>(gpus), 0.0);
        for (std::size_t e = 0; e < rows.size(); ++e)
            load[static_cast<std::size_t>(gpu_of[e])] += rows[e];
        best = std::min(best, *std::max_element(load.begin(), load.end()));
    } while (std::next_permutation(gpu_of.begin(), gpu_of.end()));
    return best;
}

RC_GTEST_PROP(ProfileLoads, is_no_placement_below_the_bound, ()) {
    const int gpus = *rc::gen::inRange(1, 4);
    const int experts = *rc::gen::inRange(gpus, 8);
    const auto drawn_rows = *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(experts),
                                                                  rc::gen::inRange(0, 30));
    const std::vector<double> rows(drawn_rows.begin(), drawn_rows.end());
    const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
    RC_PRE(all > 0);
    const double bound = load_bound(rows, gpus);
    RC_ASSERT(bound <= best_of(rows, gpus) * gpus / all + 1e-12);
    RC_ASSERT(bound >= 1);
    RC_ASSERT(load_bound(rows, gpus, SlotCounts::any) <= bound);
}

TEST(ProfileTransitions, a_fixed_path_is_all_the_information_there_is) {
    // From e to e + 1: 16 of 256 pairs, log2 16 bits, and of 4 GPUs one expert each leaves.
    const Profile profile =
        made({3, 16, 1}, 1600, [](int layer, auto token, int) { return (token + layer) % 16; });
    const ProfileSummary summary = summarize(profile, {.gpus = 4});
    const TransitionSummary& next = *summary.layers[0].next;
    EXPECT_EQ(next.transitions, 1600);
    EXPECT_NEAR(next.information, 4, 1e-12);
    EXPECT_DOUBLE_EQ(next.concentration.heaviest_tenth, 1);
    EXPECT_DOUBLE_EQ(next.off_gpu, 0.25);
    EXPECT_FALSE(summary.layers[2].next);
    EXPECT_FALSE(summary.layers[0].coactivation);  // top-1
}

TEST(ProfileTransitions, independent_layers_are_no_more_than_chance) {
    const ProfileSummary summary = summarize(drawn("lognormal:0.5", {3, 32, 4}, 4000), {});
    const TransitionSummary& next = *summary.layers[0].next;
    EXPECT_NEAR(next.information, next.information_by_chance, 0.01);
    EXPECT_NEAR(next.concentration.heaviest_tenth, next.concentration.by_chance, 0.01);
    const ProfileSummary bound =
        summarize(drawn("lognormal:0.5,transition:0.9", {3, 32, 4}, 4000), {});
    EXPECT_GT(bound.layers[0].next->information, 10 * next.information);
    EXPECT_GT(bound.layers[0].next->concentration.heaviest_tenth,
              1.2 * next.concentration.heaviest_tenth);
}

TEST(ProfileTransitions, agree_with_the_plain_count) {
    const Profile profile = drawn("zipf:0.5,transition:0.6", {2, 20, 3}, 700);
    const TransitionSummary next = *summarize(profile, {.gpus = 5}).layers[0].next;
    std::vector<double> plain = transitions(profile)[0].at_;
    EXPECT_EQ(static_cast<double>(next.transitions),
              std::accumulate(plain.begin(), plain.end(), 0.0));
    double off = 0;
    for (std::size_t at = 0; at < plain.size(); ++at)
        if (at / 20 / 4 != at % 20 / 4) off += plain[at];
    EXPECT_DOUBLE_EQ(next.off_gpu, off / (700 * 9));
    std::sort(plain.rbegin(), plain.rend());
    EXPECT_DOUBLE_EQ(next.concentration.heaviest_tenth,
                     std::accumulate(plain.begin(), plain.begin() + 40, 0.0) / (700 * 9));
}

TEST(ProfilePairs, pairs_that_always_go_together_are_found) {
    // {0, 1} or {2, 3}: of six pairs two have all, by chance each has a sixth.
    const Profile profile = made({1, 4, 2}, 100, [](int, auto token, int slot) {
        return 2 * (token % 2) + (token % 3 == 0 ? slot : 1 - slot);
    });
    const CoactivationSummary pairs = *summarize(profile, {.gpus = 2}).layers[0].coactivation;
    EXPECT_EQ(pairs.pairs, 100);
    ASSERT_EQ(pairs.top.size(), 2u);
    EXPECT_EQ(pairs.top[0].first, 0);
    EXPECT_EQ(pairs.top[0].second, 1);
    EXPECT_EQ(pairs.top[0].together, 50);
    EXPECT_DOUBLE_EQ(pairs.top[0].lift, 3);
    EXPECT_EQ(pairs.top[1].first, 2);
    EXPECT_DOUBLE_EQ(pairs.top_share, 1);
    EXPECT_DOUBLE_EQ(pairs.top_share_by_chance, 1.0 / 3);
    const PairMatrices matrices = pair_matrices(profile, 0, {});
    EXPECT_TRUE(matrices.next.empty());
    for (std::size_t at = 0; at < 16; ++at)
        EXPECT_DOUBLE_EQ(matrices.lift[at], at == 1 || at == 4 || at == 11 || at == 14 ? 3 : 0);
}

TEST(ProfilePairs, load_alone_is_no_structure) {
    const ProfileSummary summary = summarize(drawn("zipf:0.5", {1, 32, 4}, 6000), {});
    const CoactivationSummary& pairs = *summary.layers[0].coactivation;
    EXPECT_EQ(pairs.pairs, 6000 * 6);
    EXPECT_NEAR(pairs.concentration.heaviest_tenth / pairs.concentration.by_chance, 1, 0.05);
}

TEST(ProfileSums, tokens_with_fewer_experts_are_counted_as_they_are) {
    const auto nobody = Profile::kNobody;
    const Profile profile = made({2, 4, 2}, 90, [=](int layer, auto token, int slot) {
        if (layer == 0 && token % 3 == 0) return int{nobody};  // a third chose nobody
        if (slot == 1 && token % 2 == 0) return int{nobody};   // half of the others one
        return slot;
    });
    const ProfileSummary summary = summarize(profile, {.gpus = 4});
    EXPECT_EQ(summary.layers[0].load.tokens, 60);
    EXPECT_EQ(summary.layers[0].load.rows, 90);
    EXPECT_EQ(summary.layers[1].load.tokens, 90);
    EXPECT_EQ(summary.layers[0].coactivation->pairs, 30);
    EXPECT_EQ(summary.layers[0].next->transitions, 30 * 4 + 30);
}

TEST(ProfileSums, a_sample_is_told_and_like_the_whole) {
    const Profile profile = drawn("zipf:0.5,transition:0.7", {2, 16, 2}, 20000);
    const ProfileSummary all = summarize(profile, {});
    const ProfileSummary part = summarize(profile, {.most_pairs = 20000});
    EXPECT_EQ(all.pair_tokens, 20000);
    EXPECT_TRUE(all.notes.empty());
    EXPECT_EQ(part.pair_tokens, 5000);
    ASSERT_EQ(part.notes.size(), 1u);
    EXPECT_NE(part.notes[0].find("5000 of 20000 tokens"), std::string::npos);
    EXPECT_EQ(part.layers[0].load.rows, all.layers[0].load.rows);
    EXPECT_NEAR(part.layers[0].next->information, all.layers[0].next->information, 0.05);
    EXPECT_NE(part.layers[0].next->information, all.layers[0].next->information);
}

TEST(ProfileDrift, a_change_is_seen_and_noise_is_not) {
    const ProfileSummary changed = summarize(
        made({1, 8, 1}, 800, [](int, auto token, int) { return token / 400 * 4 + token % 4; }));
    EXPECT_DOUBLE_EQ(changed.layers[0].halves->total_variation, 1);
    EXPECT_DOUBLE_EQ(*changed.layers[0].halves->correlation, -1);
    const ProfileSummary still = summarize(drawn("lognormal:0.5", {8, 32, 4}, 8000));
    double moved = 0, chance = 0;
    for (const LayerSummary& layer : still.layers) {
        moved += layer.halves->total_variation;
        chance += layer.halves->by_chance;
    }
    EXPECT_NEAR(moved / chance, 1, 0.15);
    const ProfileSummary even =
        summarize(made({1, 8, 1}, 800, [](int, auto token, int) { return token % 8; }));
    EXPECT_EQ(even.layers[0].halves->total_variation, 0);
    EXPECT_FALSE(even.layers[0].halves->correlation);
}

TEST(ProfileCounts, what_they_cannot_say_is_left_out) {
    Profile profile = counted(4, {4, 2, 1, 1, 0, 0, 0, 0});
    const ProfileSummary summary = summarize(profile, {.gpus = 2});
    EXPECT_EQ(summary.layers[0].load.gini, 10.0 / 32);
    EXPECT_FALSE(summary.layers[0].coactivation);
    EXPECT_FALSE(summary.layers[0].next);
    EXPECT_FALSE(summary.layers[0].halves);
    EXPECT_EQ(summary.notes.size(), 1u);
    EXPECT_TRUE(pair_matrices(profile, 0).lift.empty());
    profile.steps = 2;
    profile.step_counts = {4, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 0};
    const ProfileSummary stepped = summarize(profile, {.gpus = 2});
    EXPECT_DOUBLE_EQ(stepped.layers[0].halves->total_variation, 1);
    EXPECT_FALSE(stepped.layers[1].halves);  // no rows
}

TEST(ProfileCounts, huge_counts_and_many_experts_are_no_trouble) {
    std::vector<double> most(60000, 0x1p53);
    most[7] = 0;
    const LoadSummary load = load_summary(most, 8);
    EXPECT_NEAR(load.largest_over_mean, 1, 1e-4);
    EXPECT_NEAR(load.effective_experts, 59999, 1);
    EXPECT_TRUE(std::isfinite(load.variation) && std::isfinite(load.gini));
    const Profile tokens =
        made({1, 5000, 2}, 10, [](int, auto token, int slot) { return 2 * token + slot; });
    const ProfileSummary too_many = summarize(tokens, {});
    EXPECT_FALSE(too_many.layers[0].coactivation);
    EXPECT_EQ(too_many.notes.size(), 1u);
}

TEST(ProfileDifferences, another_domain_is_far_and_the_same_near) {
    const Shape shape{4, 32, 4};
    const std::vector<Profile> profiles{drawn("lognormal:0.8", shape, 3000, 1),
                                        drawn("lognormal:0.8", shape, 3000, 2),
                                        drawn("lognormal:0.8", shape, 3000, 1)};
    const auto all = differences(profiles);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[1].first, 0u);
    EXPECT_EQ(all[1].second, 2u);
    EXPECT_EQ(all[1].total_variation, 0);
    EXPECT_DOUBLE_EQ(*all[1].correlation, 1);
    EXPECT_GT(all[0].total_variation, 5 * all[0].by_chance);
    EXPECT_GE(all[0].worst, all[0].total_variation);
    EXPECT_EQ(all[0].total_variation, all[2].total_variation);
    EXPECT_THROW(differences({profiles[0], drawn("uniform", {4, 16, 4}, 10)}), InputError);
}

TEST(ProfileSums, wrong_gpus_and_layers_are_refused) {
    const Profile profile = counted(4, {1, 2, 3, 4});
    for (const int gpus : {0, -1, 5})
        EXPECT_THROW(summarize(profile, {.gpus = gpus}), InputError) << gpus;
    EXPECT_THROW(pair_matrices(profile, 1), InputError);
    EXPECT_THROW(pair_matrices(profile, -1), InputError);
}

TEST(ProfileOfRealRouting, is_what_was_measured_before) {
    const char* const folder = std::getenv("MOEHUB_ROUTING_DIR");
    const std::string path =
        (folder != nullptr ? std::string(folder)
                           : std::string(MOEHUB_SOURCE_DIR "/../shared/data/routing")) +
        "/dsv2lite-law.npy";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no recorded routing in " << path;
    const ProfileSummary summary = summarize(read_profile(parse_profile_source(path)));
    double gpu = 0, off = 0;
    for (const LayerSummary& layer : summary.layers) {
        gpu += layer.load.gpu_contiguous / 26;
        if (layer.next) off += layer.next->off_gpu / 25;
        EXPECT_GT(layer.coactivation->concentration.heaviest_tenth,
                  1.1 * layer.coactivation->concentration.by_chance);
    }
    EXPECT_NEAR(gpu, 1.385, 0.01);
    EXPECT_NEAR(off, 0.874, 0.001);
}

}  // namespace
}  // namespace moehub::profile_summary_test
