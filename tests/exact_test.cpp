// Is the exact method's layout the best there is, by the evaluation that shares no code with it?
#include "place/exact/exact.hpp"

#include "base/rng.hpp"
#include "error_of.hpp"
#include "place/methods.hpp"
#include "place_cases.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace moehub::exact_test {
namespace {

using LayerOn = std::vector<std::vector<int>>;  // [gpu] → experts

void all_placements(int experts, LayerOn on, std::vector<LayerOn>& found) {
    int expert = 0;
    for (const auto& gpu : on) expert += static_cast<int>(gpu.size());
    if (expert == experts) {
        found.push_back(on);
        return;
    }
    for (auto& gpu : on) {
        if (gpu.size() == static_cast<std::size_t>(experts) / on.size()) continue;
        gpu.push_back(expert);
        all_placements(experts, on, found);
        gpu.pop_back();
    }
}

std::vector<LayerOn> all_placements(int experts, int gpus) {
    std::vector<LayerOn> found;
    all_placements(experts, LayerOn(static_cast<std::size_t>(gpus)), found);
    return found;
}

double ratio_of(std::span<const double> counts, const LayerOn& on) {
    double sum = 0;
    double most = 0;
    for (const auto& experts : on) {
        double load = 0;
        for (const int expert : experts) load += counts[static_cast<std::size_t>(expert)];
        sum += load;
        most = std::max(most, load);
    }
    return sum > 0 ? most * static_cast<double>(on.size()) / sum : 1;
}

/// The busiest GPU over the mean, in the profile or block where that is most.
double worst_ratio(const PlaceInput& input, int blocks, int layer, const LayerOn& on) {
    double worst = 0;
    for (const Profile& profile : input.profiles) {
        worst = std::max(worst, ratio_of(profile.counts_of(layer), on));
        for (const auto& counts : block_counts(profile, blocks))
            worst = std::max(worst, ratio_of(std::span(counts).subspan(
                                                 static_cast<std::size_t>(layer * profile.experts),
                                                 static_cast<std::size_t>(profile.experts)),
                                             on));
    }
    return worst;
}

/// The least value over all layouts whose layers are all allowed.
double least_value(const PlaceInput& input, const PlaceOptions& options,
                   const std::function<bool(int, const LayerOn&)>& allowed) {
    const auto placements = all_placements(input.profiles[0].experts, input.gpus);
    ExpertLayout layout =
        contiguous_layout({input.profiles[0].layers, input.profiles[0].experts}, input.gpus);
    double least = std::numeric_limits<double>::infinity();
    const std::function<void(int)> descend = [&](int layer) {
        if (layer == layout.layers()) {
            least = std::min(least, mean_value(input, options, layout));
            return;
        }
        for (const LayerOn& on : placements) {
            if (!allowed(layer, on)) continue;
            layout.on[static_cast<std::size_t>(layer)] = on;
            descend(layer + 1);
        }
    };
    descend(0);
    return least;
}

bool anything(int, const LayerOn&) {
    return true;
}

std::string error_of(const PlaceInput& input, const PlaceOptions& options) {
    return moehub::error_of([&] { solve_exact(input, options); });
}

void expect_best(const PlaceInput& input, const PlaceOptions& options, double least) {
    const Solution solution = solve_exact(input, options);
    check(solution.layout, "exact");
    EXPECT_EQ(slots_per_gpu(solution.layout), input.profiles[0].experts / input.gpus);
    EXPECT_FALSE(solution.cut_short);
    ASSERT_TRUE(solution.bound.has_value());
    EXPECT_NEAR(*solution.bound, least, 1e-9);
    EXPECT_NEAR(mean_value(input, options, solution.layout), least, 1e-9);
}

TEST(Exact, is_the_best_of_all_layouts) {
    for (const std::string objective :
         {"load", "gpus", "transitions", "activated", "gpus+4*transitions",
          "load+0.3*gpus+2*transitions+0.1*activated"})
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
            SCOPED_TRACE(objective + ", seed " + std::to_string(seed));
            const PlaceInput input{.profiles = {random_profile({3, 4, 2, 30}, seed)}, .gpus = 2};
            const PlaceOptions options = options_for(objective);
            expect_best(input, options, least_value(input, options, anything));
        }
}

TEST(Exact, is_the_best_over_nodes) {
    for (const std::string objective :
         {"nodes", "node-transitions", "gpus+4*nodes+transitions+4*node-transitions"}) {
        SCOPED_TRACE(objective);
        const PlaceInput input{
            .profiles = {random_profile({2, 4, 2, 20}, 7)}, .gpus = 4, .nodes = 2};
        const PlaceOptions options = options_for(objective);
        expect_best(input, options, least_value(input, options, anything));
    }
}

TEST(Exact, is_the_best_over_nodes_with_more_layers_and_slots) {
    const PlaceInput input{.profiles = {random_profile({3, 4, 2, 20}, 8)}, .gpus = 2, .nodes = 2};
    const PlaceOptions options = options_for("gpus+4*nodes+transitions+4*node-transitions");
    expect_best(input, options, least_value(input, options, anything));
}

TEST(Exact, weighs_several_profiles) {
    Profile first = random_profile({3, 4, 2, 30}, 1);
    Profile second = random_profile({3, 4, 1, 50}, 2);
    first.weight = 3;
    const PlaceInput input{.profiles = {first, second}, .gpus = 2};
    const PlaceOptions options = options_for("load+gpus+transitions");
    expect_best(input, options, least_value(input, options, anything));
}

TEST(Exact, weighs_what_moves) {
    const PlaceInput input{.profiles = {random_profile({3, 4, 2, 30}, 5)}, .gpus = 2};
    PlaceOptions options = options_for("gpus+4*transitions+0.5*moved");
    options.current = round_robin_layout({3, 4}, 2);
    expect_best(input, options, least_value(input, options, anything));
    // A weight that nothing outweighs: all stays.
    options.objective = parse_objective("transitions+1000*moved");
    EXPECT_EQ(moved_experts(*options.current, solve_exact(input, options).layout), 0);
}

TEST(Exact, keeps_the_load_cap_of_every_profile_and_block) {
    const PlaceInput input{
        .profiles = {random_profile({2, 6, 2, 60}, 3), random_profile({2, 6, 2, 60}, 4)},
        .gpus = 2};
    for (const int blocks : {1, 3}) {
        PlaceOptions options = options_for("gpus+transitions");
        options.load_cap = 1.25;
        options.load_blocks = blocks;
        const auto within = [&](int layer, const LayerOn& on) {
            return worst_ratio(input, blocks, layer, on) <= options.load_cap + 1e-9;
        };
        const double free = least_value(input, options_for("gpus+transitions"), anything);
        const double capped = least_value(input, options, within);
        ASSERT_LT(free, capped);  // or the cap is not tested
        expect_best(input, options, capped);
        EXPECT_TRUE(solve_exact(input, options).notes.empty());
    }
}

TEST(Exact, takes_the_lowest_load_where_none_keeps_the_cap) {
    Profile profile = random_profile({2, 4, 2, 40}, 6);
    // In layer 1 everyone chooses expert 3, and a quarter expert 0 as well.
    for (std::int64_t token = 0; token < profile.tokens; ++token) {
        const auto row = static_cast<std::size_t>((profile.tokens + token) * 2);
        profile.chosen[row] = 3;
        profile.chosen[row + 1] = token % 4 == 0 ? 0 : Profile::kNobody;
    }
    count_choices(profile);
    const PlaceInput input{.profiles = {profile}, .gpus = 2};
    PlaceOptions options = options_for("gpus");
    options.load_cap = 1.2;
    double lowest = 100;
    for (const LayerOn& on : all_placements(4, 2))
        lowest = std::min(lowest, worst_ratio(input, 1, 1, on));
    ASSERT_GT(lowest, options.load_cap);
    const Solution solution = solve_exact(input, options);
    EXPECT_NEAR(worst_ratio(input, 1, 1, solution.layout.on[1]), lowest, 1e-9);
    EXPECT_LE(worst_ratio(input, 1, 0, solution.layout.on[0]), options.load_cap);
    ASSERT_EQ(solution.notes.size(), 1U);
    EXPECT_NE(solution.notes[0].find("in layer 1:"), std::string::npos) << solution.notes[0];
}

TEST(Exact, places_counts_alone_by_load) {
    const PlaceInput input{.profiles = {counts_only(random_profile({2, 4, 2, 30}, 9))}, .gpus = 2};
    const PlaceOptions options = options_for("load");
    expect_best(input, options, least_value(input, options, anything));
}

TEST(Exact, one_gpu_has_one_layout) {
    const PlaceInput input{.profiles = {random_profile({2, 40, 2, 30}, 9)}, .gpus = 1};
    const PlaceOptions options = options_for("load+gpus+transitions");
    const Solution solution = solve_exact(input, options);
    EXPECT_EQ(solution.bound, mean_value(input, options, solution.layout));
    EXPECT_EQ(*solution.bound, 2);
}

TEST(Exact, says_what_is_allowed) {
    PlaceInput input{.profiles = {random_profile({1, 64, 2, 10}, 1)}, .gpus = 8};
    EXPECT_EQ(error_of(input, options_for("gpus")),
              "exact: found 64 experts on 8 GPUs, allowed: at most 40,320 placements a layer (8 "
              "experts on 4 GPUs have 2,520)");
    input = {.profiles = {random_profile({1, 4, 2, 10}, 1)}, .gpus = 2};
    EXPECT_EQ(error_of(input, options_for("gpus+pair")),
              "exact: objective: found pair, allowed: load, gpus, nodes, transitions, "
              "node-transitions, activated, moved");
    PlaceOptions options = options_for("gpus");
    options.max_moves = 3;
    EXPECT_EQ(error_of(input, options), "exact: found --max-moves, allowed: none");
    input.redundant = 2;
    EXPECT_EQ(error_of(input, options_for("gpus")), "exact: found --replicas, allowed: none");
}

TEST(Exact, stopped_gives_a_layout_without_a_bound) {
    const PlaceInput input{.profiles = {random_profile({6, 8, 2, 50}, 1)}, .gpus = 4};
    PlaceOptions options = options_for("transitions");
    std::stop_source source;
    source.request_stop();
    options.stop = source.get_token();
    const Solution stopped = solve_exact(input, options);
    check(stopped.layout, "exact");
    EXPECT_TRUE(stopped.cut_short);
    EXPECT_FALSE(stopped.bound.has_value());
    EXPECT_EQ(stopped.notes.size(), 1U);
    options.stop = {};
    EXPECT_GT(mean_value(input, options, stopped.layout), *solve_exact(input, options).bound);
}

TEST(Exact, threads_change_nothing) {
    const PlaceInput input{.profiles = {random_profile({3, 14, 2, 40}, 2)}, .gpus = 2};
    PlaceOptions options = options_for("transitions");  // few tokens: many ties
    options.threads = 1;
    const ExpertLayout alone = solve_exact(input, options).layout;
    options.threads = 3;
    EXPECT_EQ(solve_exact(input, options).layout, alone);
}

TEST(LayerPlacements, are_all_there_once) {
    EXPECT_EQ(count_placements(8, 4), 2520);
    EXPECT_EQ(count_placements(16, 2), 12870);
    EXPECT_GT(count_placements(65535, 5), 1e9);
    const LayerPlacements one_node({8, 4, 1, false});
    EXPECT_EQ(one_node.size(), 2520);
    EXPECT_EQ(one_node.orbits(), 105);
    EXPECT_EQ(LayerPlacements({8, 4, 2, false}).orbits(), 2520 / 8);
    EXPECT_EQ(LayerPlacements({8, 4, 4, false}).orbits(), 105);
    EXPECT_EQ(LayerPlacements({8, 4, 1, true}).orbits(), 2520);
}

// Orbits are a shortcut: with a name for every GPU the same value must come out.
TEST(ExactChain, names_cost_nothing) {
    for (const int nodes : {1, 2}) {
        Rng rng(11);
        constexpr int kLayers = 4;
        std::vector<Matrix> share(kLayers - 1, Matrix(6, 6));
        for (Matrix& matrix : share)
            for (double& value : matrix.at_) value = rng.uniform();
        std::vector<double> values;
        for (const bool named : {false, true}) {
            const LayerPlacements all({6, nodes == 1 ? 3 : 2, nodes, named});
            ChainTask task{.placements = &all, .cost = {}, .prices = {}};
            task.cost.assign(kLayers, std::vector<double>(static_cast<std::size_t>(all.orbits())));
            task.prices = [&](int boundary, int placement, Matrix& prices) {
                const auto before = all.sets_of(placement);
                for (int gpu = 0; gpu < prices.rows; ++gpu)
                    for (int number = 0; number < prices.columns; ++number) {
                        prices(gpu, number) = 0;
                        for (int from = 0; from < 6; ++from)
                            for (int to = 0; to < 6; ++to)
                                if ((all.sets()[static_cast<std::size_t>(number)] >> to & 1) &&
                                    !(before[static_cast<std::size_t>(gpu)] >> from & 1))
                                    prices(gpu, number) +=
                                        share[static_cast<std::size_t>(boundary)](from, to);
                    }
            };
            values.push_back(best_chain(task).value);
        }
        EXPECT_NEAR(values[0], values[1], 1e-9);
    }
}

}  // namespace
}  // namespace moehub::exact_test
