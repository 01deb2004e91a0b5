// Does a layout know what it holds, and is what cannot be refused?
#include "error_of.hpp"

#include <moehub/error.hpp>
#include <moehub/expert_layout.hpp>

#include <gtest/gtest.h>

namespace moehub::layout_test {
namespace {

using Lists = std::vector<std::vector<int>>;

std::string check_of(const ExpertLayout& layout) {
    return error_of([&] { check(layout, "a.json"); });
}

TEST(Layout, is_contiguous_as_evenly_as_it_goes) {
    const ExpertLayout layout = contiguous_layout({2, 7}, 3);
    EXPECT_EQ(layout.layers(), 2);
    EXPECT_EQ(layout.on[0], (Lists{{0, 1, 2}, {3, 4}, {5, 6}}));
    EXPECT_EQ(layout.on[1], layout.on[0]);
    EXPECT_EQ(layout.layer_numbers, (std::vector{0, 1}));
    EXPECT_EQ(layout.model_layers, 2);
    EXPECT_EQ(check_of(layout), "accepted");
}

TEST(Layout, is_round_robin) {
    EXPECT_EQ(round_robin_layout({1, 7}, 3).on[0], (Lists{{0, 3, 6}, {1, 4}, {2, 5}}));
}

TEST(Layout, keeps_the_models_layer_numbers) {
    const ExpertLayout layout = contiguous_layout({2, 4, {3, 5}, 7}, 2);
    EXPECT_EQ(layout.layer_numbers, (std::vector{3, 5}));
    EXPECT_EQ(layout.model_layers, 7);
    EXPECT_EQ(empty_layout({2, 4, {3, 5}}, 2).model_layers, 6);
    EXPECT_EQ(empty_layout(shape_of(layout), 2).layer_numbers, layout.layer_numbers);
}

TEST(Layout, counts_slots_where_all_gpus_have_as_many) {
    EXPECT_EQ(slots_per_gpu(contiguous_layout({2, 8}, 4)), 2);
    EXPECT_EQ(slots_per_gpu(contiguous_layout({2, 7}, 4)), 0);
    ExpertLayout layout = contiguous_layout({2, 4}, 2);
    layout.on[1] = {{0, 1, 2}, {2, 3, 0}};  // in one layer alike, in the layers not
    EXPECT_EQ(slots_per_gpu(layout), 0);
    EXPECT_EQ(slots_per_gpu({}), 0);
}

TEST(Layout, refuses_sizes_that_cannot_be) {
    const auto made = [](const LayoutShape& shape, int gpus) {
        return error_of([&] { empty_layout(shape, gpus); });
    };
    EXPECT_EQ(made({0, 8}, 2), "layout: layers: found 0, allowed: 1 to 100000");
    EXPECT_EQ(made({1, 0}, 2), "layout: experts: found 0, allowed: 1 to 65535");
    EXPECT_EQ(made({1, 8}, 0), "layout: gpus: found 0, allowed: 1 to 65535");
    EXPECT_EQ(made({1, 8}, 2000000000), "layout: gpus: found 2000000000, allowed: 1 to 65535");
    EXPECT_EQ(made({2000000000, 8}, 1), "layout: layers: found 2000000000, allowed: 1 to 100000");
    EXPECT_EQ(made({100000, 8}, 65535),
              "layout: layers: found 100000 on 65535 GPUs, allowed: 4194304 lists of experts in "
              "all");
    EXPECT_EQ(made({2, 8, {3}, 9}, 1),
              "layout: layer numbers: found 1, allowed: as many as the 2 layers");
    for (const std::vector<int>& numbers :
         {std::vector{3, 3}, std::vector{4, 3}, std::vector{-1, 3}, std::vector{3, 9}})
        EXPECT_TRUE(made({2, 8, numbers, 9}, 1).ends_with("below the model's 9 layers"));
}

TEST(Layout, check_says_what_is_wrong) {
    ExpertLayout layout = contiguous_layout({2, 4, {3, 5}, 6}, 2);
    layout.on[1] = {{0, 1}, {2, 2}};
    EXPECT_EQ(check_of(layout),
              "a.json: layer 5: found expert 3 on no GPU, allowed: each on at least one");
    layout.on[1] = {{0, 1}, {2, 4}};
    EXPECT_EQ(check_of(layout), "a.json: layer 5: GPU 1: found expert 4, allowed: 0 to 3");
    layout.on[1] = {{0, -1}, {2, 3}};
    EXPECT_EQ(check_of(layout), "a.json: layer 5: GPU 0: found expert -1, allowed: 0 to 3");
    layout.on[1] = {{0, 1, 2, 3}};
    EXPECT_EQ(check_of(layout), "a.json: layer 5: found 1 GPUs, allowed: 2");
    layout.on[1] = {{0, 1, 2, 3}, {}};
    EXPECT_EQ(check_of(layout), "accepted");
    EXPECT_NE(check_of({}), "accepted");
}

TEST(Layout, gives_the_simulator_one_layer_with_copies_of_a_gpu_as_one) {
    ExpertLayout layout = contiguous_layout({2, 3}, 3);
    layout.on[1] = {{0, 1, 0}, {2, 1, 1}, {0, 2, 2}};
    const Placement placement = placement_of(layout, 1);
    EXPECT_EQ(placement.ranks, 3);
    EXPECT_EQ(placement.hosts, (Lists{{0, 2}, {0, 1}, {1, 2}}));
    EXPECT_NO_THROW(check(placement, 3));
}

TEST(Layout, counts_the_experts_that_must_be_copied) {
    const ExpertLayout from = contiguous_layout({2, 4}, 2);
    ExpertLayout to = from;
    EXPECT_EQ(moved_experts(from, to), 0);
    to.on[0] = {{1, 0}, {3, 2}};  // other slots of the same GPU
    EXPECT_EQ(moved_experts(from, to), 0);
    to.on[1] = {{0, 2}, {1, 3}};
    EXPECT_EQ(moved_experts(from, to), 2);
    to.on[1] = {{0, 1, 3}, {2, 3, 2}};  // a copy to the first; the second has 2 already
    EXPECT_EQ(moved_experts(from, to), 1);
    EXPECT_THROW(moved_experts(from, contiguous_layout({2, 4}, 4)), InputError);
    EXPECT_THROW(moved_experts(from, contiguous_layout({1, 4}, 2)), InputError);
    EXPECT_THROW(moved_experts(from, contiguous_layout({2, 5}, 2)), InputError);
}

}  // namespace
}  // namespace moehub::layout_test
