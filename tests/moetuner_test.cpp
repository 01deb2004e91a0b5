// Do MoETuner's two programs reach what trying everything reaches, and does the whole method give
// layouts that keep its rules?
#include "place/moetuner/moetuner.hpp"

#include "base/rng.hpp"
#include "error_of.hpp"
#include "place/methods.hpp"
#include "place/moetuner/ilp.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace moehub::moetuner_test {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

// 8a + 11b + 6c + 4d at most, 5a + 7b + 4c + 3d within 14: b, c and d make 21.
IntegerProgram knapsack() {
    IntegerProgram program;
    for (const double worth : {8, 11, 6, 4}) program.add_switch(-worth);
    program.add_row(0, 14, {{0, 5}, {1, 7}, {2, 4}, {3, 3}});
    return program;
}

TEST(IntegerProgram, finds_the_best_and_prints_nothing) {
    ::testing::internal::CaptureStdout();
    const auto result = knapsack().solve({});
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
    EXPECT_TRUE(result.proven);
    EXPECT_FALSE(result.cut_short);
    EXPECT_NEAR(result.value, -21, 1e-6);
    ASSERT_EQ(result.values.size(), 4U);
    EXPECT_NEAR(result.values[0], 0, 1e-6);
    EXPECT_NEAR(result.values[1], 1, 1e-6);
}

TEST(IntegerProgram, keeps_its_start_where_time_is_over) {
    const auto late = knapsack().solve({.seconds = 0}, {1, 0, 1, 1});
    EXPECT_EQ(late.values, (std::vector<double>{1, 0, 1, 1}));
    EXPECT_EQ(late.value, -18);
    EXPECT_FALSE(late.proven);
    EXPECT_TRUE(late.cut_short);
    EXPECT_TRUE(knapsack().solve({.seconds = 0}).values.empty());
    EXPECT_THROW(knapsack().solve({}, {1, 1, 1, 1}), std::logic_error);
}

TEST(IntegerProgram, a_start_is_improved) {
    const auto result = knapsack().solve({}, {1, 0, 1, 1});
    EXPECT_NEAR(result.value, -21, 1e-6);
    EXPECT_TRUE(result.proven);
}

std::vector<double> random_loads(int experts, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<double> loads;
    for (int e = 0; e < experts; ++e) loads.push_back(static_cast<double>(1 + rng.below(1000)));
    return loads;
}

/// Σ |load − mean| over the mean.
double uneven(const std::vector<double>& loads, const std::vector<std::vector<int>>& clusters) {
    const double mean =
        std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(clusters.size());
    double sum = 0;
    for (const auto& cluster : clusters) {
        double load = 0;
        for (const int expert : cluster) load += loads[at(expert)];
        sum += std::abs(load - mean) / mean;
    }
    return sum;
}

double least_uneven(const std::vector<double>& loads, int clusters, bool unequal) {
    std::vector<std::vector<int>> packed(at(clusters));
    double least = kAny;
    const std::function<void(int)> descend = [&](int expert) {
        if (expert == static_cast<int>(loads.size())) {
            for (const auto& cluster : packed)
                if (cluster.empty()) return;
            least = std::min(least, uneven(loads, packed));
            return;
        }
        for (auto& cluster : packed) {
            if (!unequal && cluster.size() == loads.size() / at(clusters)) continue;
            cluster.push_back(expert);
            descend(expert + 1);
            cluster.pop_back();
        }
    };
    descend(0);
    return least;
}

TEST(MoeTunerClusters, are_as_even_as_can_be) {
    struct Case {
        int experts, clusters;
        bool unequal;
    };
    for (const Case& c : {Case{8, 4, false},
                          {8, 2, false},
                          {6, 3, false},
                          {9, 3, false},
                          {6, 3, true},
                          {7, 2, true},
                          {8, 3, true}})
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
            SCOPED_TRACE(::testing::Message() << c.experts << " on " << c.clusters << ", unequal "
                                              << c.unequal << ", seed " << seed);
            const auto loads = random_loads(c.experts, seed);
            const auto found = balanced_clusters(
                {.load = loads, .clusters = c.clusters, .unequal = c.unequal, .seconds = 100});
            const double least = least_uneven(loads, c.clusters, c.unequal);
            EXPECT_TRUE(found.proven);
            EXPECT_NEAR(found.uneven, uneven(loads, found.experts), 1e-9);
            EXPECT_GE(found.uneven, least - 1e-9);
            EXPECT_LE(found.uneven, least * 1.026 + 0.001 * c.clusters + 1e-9);
            for (const auto& cluster : found.experts) {
                EXPECT_FALSE(cluster.empty());
                if (c.unequal) continue;
                EXPECT_EQ(cluster.size(), at(c.experts / c.clusters));
            }
        }
}

TEST(MoeTunerClusters, none_is_empty_where_nobody_was_chosen) {
    for (const bool unequal : {false, true}) {
        std::vector<double> loads(8, 0.0);
        for (const double heavy : {0.0, 50.0}) {
            loads[5] = heavy;
            for (const auto& cluster :
                 balanced_clusters({.load = loads, .clusters = 4, .unequal = unequal}).experts)
                EXPECT_FALSE(cluster.empty());
        }
    }
}

LabelTask random_labels(int gpus, int nodes, int layers, std::uint64_t seed) {
    Rng rng(seed);
    LabelTask task{
        .traffic = {}, .sizes = {}, .gpus = gpus, .nodes = nodes, .seed = 1, .work = 2'000'000};
    task.sizes.assign(at(layers), std::vector<int>(at(gpus), 4));
    for (int boundary = 0; boundary + 1 < layers; ++boundary)
        for (double& value : task.traffic.emplace_back(gpus, gpus).at_)
            value = static_cast<double>(1 + rng.below(200));
    return task;
}

/// Some clusters give an expert to another.
void make_unequal(LabelTask& task, std::uint64_t seed) {
    Rng rng(seed);
    for (auto& sizes : task.sizes)
        for (int moves = 0; moves < 3; ++moves) {
            int& from = sizes[static_cast<std::size_t>(rng.below(sizes.size()))];
            int& to = sizes[static_cast<std::size_t>(rng.below(sizes.size()))];
            if (from > 1) --from, ++to;
        }
}

double least_heaviest_pairs(const LabelTask& task) {
    Labels labels(task.sizes.size(), std::vector<int>(at(task.gpus)));
    double least = kAny;
    const std::function<void(std::size_t)> descend = [&](std::size_t layer) {
        if (layer == labels.size()) {
            if (fits_memory(task, labels)) least = std::min(least, heaviest_pairs(task, labels));
            return;
        }
        std::iota(labels[layer].begin(), labels[layer].end(), 0);
        do {
            descend(layer + 1);
        } while (std::next_permutation(labels[layer].begin(), labels[layer].end()));
    };
    descend(0);
    return least;
}

TEST(MoeTunerLabels, heaviest_pair_by_hand) {
    LabelTask task{.traffic = {Matrix(2, 2)}, .sizes = {{1, 1}, {1, 1}}, .gpus = 2};
    task.traffic[0].at_ = {9, 2, 3, 7};
    EXPECT_EQ(heaviest_pairs(task, {{0, 1}, {0, 1}}), 3);
    EXPECT_EQ(heaviest_pairs(task, {{0, 1}, {1, 0}}), 9);
    task.nodes = 2;
    EXPECT_EQ(heaviest_pairs(task, {{0, 1}, {0, 1}}), 3 * kAcrossNodes);
}

TEST(MoeTunerLabels, matching_is_the_best_on_one_node) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const LabelTask small = random_labels(3, 1, 4, seed);
        ASSERT_TRUE(matching_is_optimal(small));
        EXPECT_EQ(heaviest_pairs(small, matched_labels(small)), least_heaviest_pairs(small));
        const LabelTask large = random_labels(6, 1, 5, seed);
        EXPECT_EQ(heaviest_pairs(large, matched_labels(large)),
                  heaviest_pairs(large, labels_by_chain(large, {}).labels));
    }
}

TEST(MoeTunerLabels, chain_is_the_best_over_nodes) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const LabelTask task = random_labels(4, 2, 3, seed);
        const LabelResult result = labels_by_chain(task, {.seconds = 100});
        EXPECT_TRUE(result.proven);
        EXPECT_EQ(heaviest_pairs(task, result.labels), least_heaviest_pairs(task));
    }
}

TEST(MoeTunerLabels, search_reaches_the_chain) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        const LabelTask task = random_labels(4, 2, 8, seed);
        const double best = heaviest_pairs(task, labels_by_chain(task, {.seconds = 100}).labels);
        const double found = heaviest_pairs(task, labels_by_search(task, matched_labels(task), {}));
        EXPECT_GE(found, best);
        EXPECT_LE(found, best * 1.02);
    }
}

TEST(MoeTunerLabels, program_reaches_the_chain) {
    for (const LabelTask& task :
         {random_labels(3, 1, 4, 1), random_labels(2, 1, 8, 2), random_labels(4, 2, 2, 3)}) {
        Labels start(task.sizes.size(), std::vector<int>(at(task.gpus)));
        for (auto& layer : start) {  // clusters backwards: GPUs need new names
            std::iota(layer.rbegin(), layer.rend(), 0);
        }
        const double best = heaviest_pairs(task, labels_by_chain(task, {.seconds = 100}).labels);
        const LabelResult result = labels_by_program(task, start, {.seconds = 100});
        ASSERT_TRUE(result.proven);
        EXPECT_LE(heaviest_pairs(task, result.labels), best * 1.026 + 1e-6);
        EXPECT_GE(heaviest_pairs(task, result.labels), best);
    }
}

TEST(MoeTunerLabels, memory_is_kept_with_clusters_of_any_size) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        LabelTask task = random_labels(3, 1, 4, seed);
        make_unequal(task, seed);
        ASSERT_FALSE(equal_sizes(task));
        const double best = least_heaviest_pairs(task);
        const Labels start = matched_labels(task);
        EXPECT_TRUE(fits_memory(task, start));
        const Labels searched = labels_by_search(task, start, {});
        EXPECT_TRUE(fits_memory(task, searched));
        EXPECT_EQ(heaviest_pairs(task, searched), best);
        const LabelResult result = labels_by_program(task, start, {.seconds = 100});
        EXPECT_TRUE(fits_memory(task, result.labels));
        EXPECT_LE(heaviest_pairs(task, result.labels), best * 1.026 + 1e-6);
    }
}

/// A profile like that of Mixtral: 8 experts, two of them for every token; some are liked more, and
/// neighbours follow.
Profile mixtral_like(int layers, std::int64_t tokens, std::uint64_t seed) {
    Rng rng(seed);
    Profile profile;
    profile.layers = profile.model_layers = layers;
    profile.experts = 8;
    profile.top_k = 2;
    profile.tokens = tokens;
    for (int layer = 0; layer < layers; ++layer) profile.layer_numbers.push_back(layer);
    for (std::int64_t row = 0; row < layers * tokens; ++row) {
        auto first = static_cast<std::uint16_t>(std::min(rng.below(8), rng.below(8)));
        if (row >= tokens && rng.below(2) == 0) {
            const auto before = static_cast<std::size_t>((row - tokens) * 2);
            first = static_cast<std::uint16_t>((profile.chosen[before] * 3 + 1) % 8);
        }
        profile.chosen.push_back(first);
        profile.chosen.push_back(static_cast<std::uint16_t>((first + 1 + rng.below(7)) % 8));
    }
    count_choices(profile);
    return profile;
}

PlaceOptions patient(bool unequal = false) {
    PlaceOptions options;
    options.time_limit = 100;
    options.unequal = unequal;
    return options;
}

PlaceInput input_of(const Profile& profile, int nodes = 1) {
    return {.profiles = {profile}, .gpus = 4, .nodes = nodes};
}

TEST(MoeTuner, balances_every_layer_and_lightens_the_heaviest_pair) {
    const PlaceInput input = input_of(mixtral_like(6, 400, 1));
    const Profile& profile = input.profiles.front();
    const Solution solution = solve_moetuner(input, patient());
    check(solution.layout, "moetuner");
    EXPECT_EQ(slots_per_gpu(solution.layout), 2);
    EXPECT_FALSE(solution.cut_short);
    EXPECT_TRUE(solution.notes.empty());
    for (int layer = 0; layer < 6; ++layer) {
        const auto counts = profile.counts_of(layer);
        const std::vector<double> loads(counts.begin(), counts.end());
        EXPECT_LE(uneven(loads, solution.layout.on[at(layer)]),
                  least_uneven(loads, 4, false) * 1.026 + 0.004 + 1e-9);
    }
    const Evaluation tuned = evaluate(profile, solution.layout);
    const Evaluation plain = evaluate(profile, contiguous_layout({6, 8}, 4));
    EXPECT_LT(tuned.load_max_over_mean, plain.load_max_over_mean);
    EXPECT_LT(tuned.heaviest_pair_by_layer, plain.heaviest_pair_by_layer);
    EXPECT_EQ(solve_moetuner(input, patient()).layout, solution.layout);
}

TEST(MoeTuner, places_over_nodes_and_with_clusters_of_any_size) {
    const PlaceInput input = input_of(mixtral_like(4, 200, 2), 2);
    const Solution nodes = solve_moetuner(input, patient());
    check(nodes.layout, "moetuner");
    EXPECT_EQ(slots_per_gpu(nodes.layout), 2);
    const Solution unequal = solve_moetuner(input_of(input.profiles.front()), patient(true));
    check(unequal.layout, "moetuner");
    const Profile& profile = input.profiles.front();
    EXPECT_LE(evaluate(profile, unequal.layout).load_max_over_mean,
              evaluate(profile, nodes.layout).load_max_over_mean + 0.01);
}

TEST(MoeTuner, many_gpus_are_searched_and_it_says_so) {
    Profile profile = mixtral_like(3, 100, 3);
    profile.experts = 12;
    count_choices(profile);
    const PlaceInput input{.profiles = {profile}, .gpus = 12, .nodes = 3};
    PlaceOptions options;
    options.time_limit = 2;
    const Solution solution = solve_moetuner(input, options);
    check(solution.layout, "moetuner");
    ASSERT_FALSE(solution.notes.empty());
    EXPECT_NE(solution.notes.back().find("41472 products"), std::string::npos);
}

TEST(MoeTuner, counts_alone_are_balanced) {
    Profile profile = mixtral_like(3, 200, 4);
    profile.chosen.clear();
    profile.tokens = profile.top_k = 0;
    const Solution solution = solve_moetuner(input_of(profile), patient());
    check(solution.layout, "moetuner");
    ASSERT_EQ(solution.notes.size(), 1U);
    EXPECT_NE(solution.notes[0].find("counts only"), std::string::npos);
}

TEST(MoeTuner, stopped_it_still_gives_a_layout) {
    std::stop_source source;
    source.request_stop();
    PlaceOptions options = patient(true);
    options.stop = source.get_token();
    const Solution solution = solve_moetuner(input_of(mixtral_like(4, 200, 5)), options);
    check(solution.layout, "moetuner");
    EXPECT_TRUE(solution.cut_short);
}

TEST(MoeTuner, tells_how_far_it_is) {
    std::vector<double> shares;
    PlaceOptions options;
    options.progress = [&](double share, double) { shares.push_back(share); };
    solve_moetuner(input_of(mixtral_like(3, 100, 6)), options);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    ASSERT_FALSE(shares.empty());
    EXPECT_EQ(shares.back(), 1);
}

TEST(MoeTuner, says_what_is_allowed) {
    const auto error_of = [](const PlaceInput& bad) {
        return moehub::error_of([&] { solve_moetuner(bad, {}); });
    };
    PlaceInput input = input_of(mixtral_like(2, 20, 1));
    input.redundant = 4;
    EXPECT_EQ(error_of(input), "moetuner: found --replicas, allowed: none");
    input.redundant = 0;
    input.gpus = 3;
    EXPECT_EQ(error_of(input),
              "moetuner: found 8 experts on 3 GPUs, allowed: as many on every GPU");
}

}  // namespace
}  // namespace moehub::moetuner_test
