// Are random numbers the same everywhere, spread as they should be, and are the portable
// logarithm and exponential right?
#include "base/rng.hpp"

#include "base/portable_math.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::rng_test {
namespace {

TEST(Rng, gives_the_published_numbers_of_xoshiro256_seeded_by_splitmix64) {
    Rng rng(1);
    EXPECT_EQ(rng.next(), 0xb3f2af6d0fc710c5);
    EXPECT_EQ(rng.next(), 0x853b559647364cea);
    EXPECT_EQ(rng.next(), 0x92f89756082a4514);
    EXPECT_EQ(rng.next(), 0x642e1c7bc266a3a7);
}

TEST(Rng, gives_other_numbers_in_another_stream_of_the_seed) {
    Rng rng(1, 7);
    EXPECT_EQ(rng.next(), 0x9c5c7575cd2893f7);
    EXPECT_EQ(rng.next(), 0x760c84b0e202d3ed);
}

TEST(Rng, gives_the_same_doubles_with_every_compiler) {
    Rng rng(42);
    EXPECT_EQ(rng.uniform(), 0.08386297105988216);
    EXPECT_EQ(rng.uniform(), 0.3789802506626686);
    Rng normals(42);
    EXPECT_EQ(normals.normal(), -0.7262191382447857);
    EXPECT_EQ(normals.normal(), -0.21119691823195985);
    EXPECT_EQ(normals.normal(), 0.2216227015035933);
}

TEST(Rng, gives_the_same_integers_with_every_compiler) {
    Rng rng(7);
    for (const std::uint64_t expected : {4u, 0u, 1u, 6u, 2u, 8u, 7u, 8u, 4u, 7u, 2u, 2u})
        EXPECT_EQ(rng.below(10), expected);
}

TEST(Rng, draws_each_integer_as_often) {
    constexpr int kBound = 7, kDraws = 700'000;
    Rng rng(3);
    std::vector<int> count(kBound, 0);
    for (int i = 0; i < kDraws; ++i) ++count[rng.below(kBound)];
    for (const int n : count) EXPECT_NEAR(n, kDraws / kBound, 5 * std::sqrt(kDraws / kBound));
}

RC_GTEST_PROP(Rng, stays_below_any_bound, (std::uint64_t seed)) {
    const auto bound =
        *rc::gen::inRange<std::uint64_t>(1, std::numeric_limits<std::uint64_t>::max());
    Rng rng(seed);
    for (int i = 0; i < 100; ++i) RC_ASSERT(rng.below(bound) < bound);
    RC_ASSERT(rng.below(1) == 0u);
}

TEST(Rng, draws_uniform_numbers_within_their_ends_and_with_their_mean) {
    constexpr int kDraws = 1'000'000;
    Rng rng(5);
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) {
        const double value = rng.uniform(), inside = rng.inside();
        ASSERT_TRUE(value >= 0 && value < 1 && inside > 0 && inside < 1);
        sum += value;
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.0015);
}

TEST(Rng, draws_normal_numbers_of_mean_0_and_deviation_1) {
    constexpr int kDraws = 1'000'000;
    Rng rng(5);
    double sum = 0, squares = 0;
    int beyond_two = 0;
    for (int i = 0; i < kDraws; ++i) {
        const double value = rng.normal();
        sum += value;
        squares += value * value;
        beyond_two += std::abs(value) > 2;
    }
    EXPECT_NEAR(sum / kDraws, 0, 0.005);
    EXPECT_NEAR(squares / kDraws, 1, 0.007);
    EXPECT_NEAR(beyond_two / 1e6, 0.0455, 0.001);
}

TEST(Rng, shuffles_into_every_order_as_often) {
    Rng rng(9);
    std::vector<int> count(6, 0);
    for (int i = 0; i < 60'000; ++i) {
        std::vector<int> order = {0, 1, 2};
        rng.shuffle(order);
        ++count[static_cast<std::size_t>(order[0] * 2 + (order[1] > order[2]))];
    }
    for (const int n : count) EXPECT_NEAR(n, 10'000, 500);
}

/// Units in the last place between the two.
double distance(double got, double expected) {
    if (got == expected) return 0;
    const double unit = std::nextafter(std::abs(expected), HUGE_VAL) - std::abs(expected);
    return std::abs(got - expected) / unit;
}

TEST(PortableMath, log_is_within_two_units_of_libm) {
    Rng rng(1);
    for (int i = 0; i < 200'000; ++i) {
        const double wide = std::ldexp(rng.inside(), static_cast<int>(rng.below(2000)) - 1000);
        const double near_one = 0.5 + rng.inside();
        ASSERT_LE(distance(portable_log(wide), std::log(wide)), 2) << wide;
        ASSERT_LE(distance(portable_log(near_one), std::log(near_one)), 2) << near_one;
    }
}

TEST(PortableMath, exp_is_within_two_units_of_libm) {
    Rng rng(1);
    for (int i = 0; i < 200'000; ++i) {
        const double x = (rng.uniform() - 0.5) * (i % 2 == 0 ? 1400 : 4);
        ASSERT_LE(distance(portable_exp(x), std::exp(x)), 2) << x;
    }
}

TEST(PortableMath, ends_are_those_of_libm) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(portable_log(1), 0);
    EXPECT_EQ(portable_log(0), -kInfinity);
    EXPECT_EQ(portable_log(kInfinity), kInfinity);
    EXPECT_TRUE(std::isnan(portable_log(-1)));
    EXPECT_NEAR(portable_log(5e-324), std::log(5e-324), 1e-12);
    EXPECT_EQ(portable_exp(0), 1);
    EXPECT_EQ(portable_exp(-kInfinity), 0);
    EXPECT_EQ(portable_exp(kInfinity), kInfinity);
    EXPECT_EQ(portable_exp(709.79), kInfinity);
    EXPECT_GT(portable_exp(-745), 0);
    EXPECT_TRUE(std::isnan(portable_exp(std::nan(""))));
}

}  // namespace
}  // namespace moehub::rng_test
