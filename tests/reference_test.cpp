// Does the reference layer compute the equations it states?
#include "model/reference.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace moehub::reference_test {
namespace {

Model tiny(bool gated, int shared) {
    Model model;
    model.experts = 3;
    model.top_k = 2;
    model.shared_experts = shared;
    model.gated = gated;
    return model;
}

Routing one_token(std::uint16_t first, std::uint16_t second, float weight) {
    Routing routing;
    routing.experts = 3;
    routing.top_k = 2;
    routing.layers = 1;
    routing.tokens = 1;
    routing.chosen = {first, second};
    routing.weights = {weight, 1 - weight};
    return routing;
}

std::vector<double> expert(const ReferenceLayer& layer, int number, std::span<const double> x) {
    std::vector<double> out(x.size());
    layer.add_expert(number, x, out, 0, layer.inner());
    return out;
}

TEST(Reference, output_is_the_weighted_sum_of_the_chosen_experts) {
    const ReferenceLayer layer(tiny(true, 0), 4, 3);
    const auto x = layer.input(0);
    const auto a = expert(layer, 2, x);
    const auto b = expert(layer, 0, x);
    const auto y = layer.output(one_token(2, 0, 0.75f), 0);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_DOUBLE_EQ(y[i], 0.75 * a[i] + 0.25 * b[i]);
}

TEST(Reference, shared_experts_are_added_for_every_token) {
    const ReferenceLayer with(tiny(true, 1), 4, 3);
    const auto x = with.input(0);
    const auto y = with.output(one_token(0, 1, 0.5f), 0);
    const auto a = expert(with, 0, x);
    const auto b = expert(with, 1, x);
    const auto shared = expert(with, 3, x);
    for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_NEAR(y[i], 0.5 * a[i] + 0.5 * b[i] + shared[i], 1e-15);
    }
}

TEST(Reference, parts_of_an_expert_add_up_to_all_of_it) {
    for (const bool gated : {true, false}) {
        const ReferenceLayer layer(tiny(gated, 0), 5, 7);
        const auto x = layer.input(3);
        const auto whole = expert(layer, 1, x);
        std::vector<double> sum(x.size());
        layer.add_expert(1, x, sum, 0, 2);
        layer.add_expert(1, x, sum, 2, 7);
        for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], whole[i], 1e-14);
    }
}

TEST(Reference, a_gate_changes_the_result_and_experts_tokens_and_places_differ) {
    const ReferenceLayer gated(tiny(true, 0), 4, 3);
    const ReferenceLayer plain(tiny(false, 0), 4, 3);
    const auto x = gated.input(0);
    EXPECT_NE(expert(gated, 0, x), expert(plain, 0, x));
    EXPECT_NE(expert(gated, 0, x), expert(gated, 1, x));
    EXPECT_NE(gated.input(0), gated.input(1));
}

// One expert of one inner number by hand: y = down · silu(up · x), the matrices being read off by
// feeding unit vectors.
TEST(Reference, an_expert_without_gate_is_down_times_silu_of_up) {
    const ReferenceLayer layer(tiny(false, 0), 2, 1);
    const double a[2] = {1, 0}, b[2] = {0, 1}, both[2] = {1, 1};
    const auto of_a = expert(layer, 0, a);
    const auto of_b = expert(layer, 0, b);
    const auto of_both = expert(layer, 0, both);
    // Directions agree: all are multiples of the one column of `down`.
    EXPECT_NEAR(of_a[0] * of_b[1], of_a[1] * of_b[0], 1e-15);
    EXPECT_NEAR(of_a[0] * of_both[1], of_a[1] * of_both[0], 1e-15);
    // silu is not linear, so the expert is not either.
    EXPECT_GT(std::abs(of_both[0] - of_a[0] - of_b[0]), 1e-6);
}

}  // namespace
}  // namespace moehub::reference_test
