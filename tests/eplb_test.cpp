// Does eplb give the slots that the published program gives, ties included?
#include "place/eplb.hpp"

#include "place/methods.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::eplb_test {
namespace {

using Rows = std::vector<std::vector<int>>;

Matrix matrix(const Rows& rows) {
    Matrix weights(static_cast<int>(rows.size()), static_cast<int>(rows.front().size()));
    for (int row = 0; row < weights.rows; ++row)
        for (int column = 0; column < weights.columns; ++column)
            weights(row, column) =
                rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
    return weights;
}

/// The weights of the published program's page.
Matrix example() {
    return matrix({{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86},
                   {20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27}});
}

TEST(Eplb, gives_the_published_example) {
    const EplbResult result = eplb(example(), {.slots = 16, .groups = 4, .nodes = 2, .gpus = 8});
    EXPECT_EQ(result.expert_of, (Rows{{5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1},
                                      {7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1}}));
    EXPECT_EQ(result.copies,
              (Rows{{1, 2, 1, 1, 2, 2, 1, 1, 1, 1, 2, 1}, {1, 2, 1, 1, 1, 2, 2, 1, 2, 1, 1, 1}}));
}

// Expected slots of the following come from the published program's steps, written out in Python
// with every number rounded to single precision.
TEST(Eplb, gives_the_published_programs_slots_without_copies_globally_and_one_per_gpu) {
    EXPECT_EQ(
        eplb(example(), {.slots = 12, .gpus = 4}).expert_of,
        (Rows{{10, 3, 7, 5, 8, 6, 1, 11, 2, 4, 0, 9}, {5, 3, 11, 6, 9, 4, 8, 2, 10, 7, 1, 0}}));
    EXPECT_EQ(eplb(example(), {.slots = 24, .groups = 3, .nodes = 2, .gpus = 8}).expert_of,
              (Rows{{9, 11, 8, 5, 1, 3, 5, 1, 3, 5, 1, 7, 4, 0, 6, 4, 0, 8, 10, 10, 11, 10, 10, 2},
                    {3, 5, 0, 6, 2, 4, 6, 2, 10, 6, 5, 11, 8, 7, 5, 8, 7, 9, 8, 7, 9, 1, 1, 5}}));
    EXPECT_EQ(
        eplb(example(), {.slots = 12, .groups = 4, .nodes = 2, .gpus = 12}).expert_of,
        (Rows{{3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2}, {6, 7, 8, 9, 10, 11, 3, 4, 5, 0, 1, 2}}));
}

// All weights 5: a node's first two experts get the further copies (then 2.5 each); those of 5 are
// packed first. All weights 0: the first expert stays the first of equals and gets both copies.
TEST(Eplb, takes_the_first_of_equals) {
    EXPECT_EQ(eplb(matrix({{5, 5, 5, 5, 5, 5, 5, 5}, {0, 0, 0, 0, 0, 0, 0, 0}}),
                   {.slots = 12, .groups = 2, .nodes = 2, .gpus = 4})
                  .expert_of,
              (Rows{{2, 0, 0, 3, 1, 1, 6, 4, 4, 7, 5, 5}, {0, 1, 2, 3, 0, 0, 4, 5, 6, 7, 4, 4}}));
}

struct Case {
    int layers, experts;
    std::uint64_t below, seed;  ///< weights
    EplbSizes sizes;
    std::uint64_t hash;
};

Matrix weights_of(const Case& one) {
    Matrix weights(one.layers, one.experts);
    std::uint64_t state = one.seed;
    for (double& weight : weights.at_) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        weight = static_cast<double>((state >> 33) % one.below);
    }
    return weights;
}

std::uint64_t hash_of(const Rows& rows) {
    std::uint64_t hash = 14695981039346656037u;
    for (const auto& row : rows)
        for (const int value : row)
            hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211u;
    return hash;
}

// Many ties (weights below 7 and below 3), weights that single precision rounds (below 10^9),
// DeepSeek-V3's size.
TEST(Eplb, gives_the_published_programs_slots_at_every_size) {
    const Case cases[] = {
        {58, 256, 100000, 1, {288, 8, 4, 32}, 9233291877650526931u},
        {58, 256, 100000, 1, {288, 8, 8, 32}, 16263260457219577438u},
        {58, 256, 100000, 1, {288, 1, 4, 32}, 5420416640767755003u},
        {20, 64, 7, 2, {96, 8, 2, 16}, 2496050065286385558u},
        {20, 64, 1000000000, 3, {128, 4, 4, 8}, 18354609524832857428u},
        {10, 48, 3, 4, {48, 4, 2, 48}, 5624546868018442149u},
        {10, 60, 50, 5, {90, 6, 3, 9}, 17626391138858866865u},
    };
    for (const Case& one : cases)
        EXPECT_EQ(hash_of(eplb(weights_of(one), one.sizes).expert_of), one.hash)
            << one.experts << " experts, weights below " << one.below;
}

TEST(Copies, go_to_the_largest_weight_per_copy) {
    const std::vector<double> weights = {90, 40, 5, 20};
    EXPECT_EQ(copies_of(weights, 4), (std::vector{1, 1, 1, 1}));
    // 90, then 45 > 40, then 40 > 30, then 30.
    EXPECT_EQ(copies_of(weights, 5), (std::vector{2, 1, 1, 1}));
    EXPECT_EQ(copies_of(weights, 6), (std::vector{3, 1, 1, 1}));
    EXPECT_EQ(copies_of(weights, 7), (std::vector{3, 2, 1, 1}));
    EXPECT_EQ(copies_of(weights, 8), (std::vector{4, 2, 1, 1}));
}

TEST(PackEvenly, puts_the_heaviest_first_where_it_is_lightest_and_there_is_room) {
    EXPECT_EQ(pack_evenly(std::vector<double>{9, 8, 2, 1}, 2), (Rows{{0, 3}, {1, 2}}));
    // The second pack is lighter until it is full.
    EXPECT_EQ(pack_evenly(std::vector<double>{9, 1, 1, 1}, 2), (Rows{{0, 3}, {1, 2}}));
    EXPECT_EQ(pack_evenly(std::vector<double>{1, 9}, 2), (Rows{{0}, {1}}));
}

RC_GTEST_PROP(Eplb, fills_every_slot_and_forgets_no_expert, ()) {
    const int nodes = *rc::gen::inRange(1, 4), gpus = nodes * *rc::gen::inRange(1, 4);
    const int groups = *rc::gen::inRange(1, 5), experts = groups * *rc::gen::inRange(1, 9);
    const int slots = (experts + gpus - 1) / gpus * gpus + gpus * *rc::gen::inRange(0, 4);
    Matrix weights(2, experts);
    for (double& weight : weights.at_) weight = *rc::gen::inRange(0, 20);
    const EplbResult result = eplb(weights, {slots, groups, nodes, gpus});
    for (std::size_t layer = 0; layer < 2; ++layer) {
        RC_ASSERT(result.expert_of[layer].size() == static_cast<std::size_t>(slots));
        for (int expert = 0; expert < experts; ++expert) {
            const auto copies =
                std::count(result.expert_of[layer].begin(), result.expert_of[layer].end(), expert);
            RC_ASSERT(copies >= 1);
            RC_ASSERT(copies == result.copies[layer][static_cast<std::size_t>(expert)]);
        }
    }
}

PlaceInput input_of(const Rows& counts, int gpus, int redundant) {
    Profile profile;
    profile.layers = profile.model_layers = static_cast<int>(counts.size());
    profile.experts = static_cast<int>(counts.front().size());
    profile.counts = matrix(counts).at_;
    for (int layer = 0; layer < profile.layers; ++layer) profile.layer_numbers.push_back(layer);
    PlaceInput input;
    input.profiles = {profile};
    input.gpus = gpus;
    input.redundant = redundant;
    return input;
}

TEST(SolveEplb, lays_the_slots_out_gpu_by_gpu) {
    const Solution solution = solve_eplb(input_of({{9, 8, 2, 1}}, 2, 0), {});
    EXPECT_EQ(solution.layout.on[0], (Rows{{0, 3}, {1, 2}}));
    EXPECT_TRUE(solution.notes.empty());
}

TEST(SolveEplb, says_when_copies_meet_and_when_nodes_are_ignored) {
    PlaceInput input = input_of({{0, 0}}, 2, 4);
    EXPECT_EQ(
        solve_eplb(input, {}).notes,
        (std::vector<std::string>{"eplb: 3 slots hold an expert that their GPU has already"}));
    input = input_of({{2, 1}}, 2, 0);
    input.nodes = 2;
    EXPECT_EQ(solve_eplb(input, {}).notes,
              (std::vector<std::string>{
                  "eplb: 1 groups do not divide by 2 nodes; nodes were not looked at"}));
}

TEST(SolveEplb, refuses_what_does_not_divide) {
    PlaceInput input = input_of({{1, 2, 3, 4}}, 2, 0);
    input.groups = 3;
    EXPECT_THROW(solve_eplb(input, {}), InputError);
    EXPECT_THROW(solve_eplb(input_of({{1, 2, 3, 4}}, 2, 1), {}), InputError);
}

TEST(SolveSimple, deals_slots_in_order_and_round) {
    EXPECT_EQ(solve_contiguous(input_of({{1, 1, 1, 1}}, 2, 2), {}).layout.on[0],
              (Rows{{0, 1, 2}, {3, 0, 1}}));
    EXPECT_EQ(solve_round_robin(input_of({{1, 1, 1, 1}}, 2, 0), {}).layout.on[0],
              (Rows{{0, 2}, {1, 3}}));
    // Experts do not divide by GPUs: the count goes on.
    EXPECT_EQ(solve_round_robin(input_of({{1, 1, 1}}, 2, 3), {}).layout.on[0],
              (Rows{{0, 2, 1}, {1, 0, 2}}));
}

TEST(SolveSimple, keeps_round_robin_copies_apart) {
    EXPECT_EQ(solve_round_robin(input_of({{1, 1, 1, 1}}, 2, 2), {}).layout.on[0],
              (Rows{{0, 2, 1}, {1, 3, 0}}));
    const auto layout = solve_round_robin(input_of({{1, 1, 1, 1}}, 4, 8), {}).layout;
    for (const auto& hosts : placement_of(layout, 0).hosts) EXPECT_EQ(hosts.size(), 3u);
}

}  // namespace
}  // namespace moehub::eplb_test
