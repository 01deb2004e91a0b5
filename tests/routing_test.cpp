// Does a routing have the shares, groups and transitions that were asked for, and the same bytes
// everywhere?
#include "error_of.hpp"

#include <moehub/error.hpp>
#include <moehub/routing.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::routing_test {
namespace {

Model model_of(int experts, int top_k, int groups = 1, int top_groups = 1) {
    Model model;
    model.experts = experts;
    model.top_k = top_k;
    model.expert_groups = groups;
    model.top_groups = top_groups;
    return model;
}

/// Share of the layer's rows that each expert has.
std::vector<double> shares_of(const Routing& routing, int layer = 0) {
    std::vector<double> shares(static_cast<std::size_t>(routing.experts), 0.0);
    for (std::int64_t token = 0; token < routing.tokens; ++token)
        for (const auto expert : routing.chosen_by(layer, token)) shares[expert] += 1;
    for (auto& share : shares) share /= static_cast<double>(routing.tokens * routing.top_k);
    return shares;
}

double deviation(const std::vector<double>& shares) {
    const double n = static_cast<double>(shares.size());
    double squares = 0;
    for (const double share : shares) squares += (share - 1 / n) * (share - 1 / n);
    return std::sqrt(squares / n);
}

/// FNV-1a over all of it.
std::uint64_t digest(const Routing& routing) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](const void* data, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i)
            hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
    };
    add(routing.chosen.data(), routing.chosen.size() * sizeof(std::uint16_t));
    add(routing.weights.data(), routing.weights.size() * sizeof(float));
    return hash;
}

TEST(RoutingSpec, reads_and_prints_all_forms) {
    for (const std::string text :
         {"uniform", "normal:0.032", "zipf:1.2", "lognormal:0.5", "uniform,transition:0.7",
          "normal:0", "zipf:1,transition:1", "balanced"})
        EXPECT_EQ(to_string(parse_routing(text)), text);
    const RoutingSpec spec = parse_routing("normal:0.032,transition:0.7");
    EXPECT_EQ(spec.shares, RoutingSpec::Shares::normal);
    EXPECT_EQ(spec.spread, 0.032);
    EXPECT_EQ(spec.transition, 0.7);
}

TEST(RoutingSpec, says_what_is_allowed) {
    const std::string allowed =
        ", allowed: uniform, normal:STD, zipf:EXPONENT, lognormal:SIGMA, each with "
        ",transition:PROBABILITY or without; balanced";
    const auto refused = [](const std::string& text) {
        return error_of([&] { parse_routing(text); });
    };
    EXPECT_EQ(refused("nromal:1"),
              "routing \"nromal:1\": unknown shares \"nromal\"; did you mean "
              "\"normal\"?" +
                  allowed);
    EXPECT_EQ(refused("zipf"), "routing \"zipf\": zipf needs a number, as in zipf:0.5" + allowed);
    EXPECT_EQ(refused("zipf:x"), "routing \"zipf:x\": zipf needs a number, found \"x\"" + allowed);
    EXPECT_EQ(refused("uniform:1"), "routing \"uniform:1\": uniform takes no number" + allowed);
    EXPECT_EQ(refused("balanced:1"), "routing \"balanced:1\": balanced takes no number" + allowed);
    EXPECT_EQ(refused("balanced,transition:1"),
              "routing: transition of balanced: found 1, allowed: 0 to 0");
    EXPECT_EQ(refused("uniform,seed:1"),
              "routing \"uniform,seed:1\": unknown option \"seed\"" + allowed);
    EXPECT_EQ(refused("zipf:11"), "routing: spread of zipf: found 11, allowed: 0 to 10");
    EXPECT_EQ(refused("normal:-1"), "routing: spread of normal: found -1, allowed: 0 to 1");
    EXPECT_EQ(refused("uniform,transition:1.5"), "routing: transition: found 1.5, allowed: 0 to 1");
    for (const std::string text : {"", ",", ":", "uniform,", "normal:nan", "normal:inf",
                                   "uniform,transition:0.5,transition:0.5", "normal:0.1 x"})
        EXPECT_NE(refused(text), "accepted") << text;
}

TEST(Routing, is_the_same_bytes_with_every_compiler) {
    const Routing mixtral = make_routing(parse_routing("normal:0.032"), model_of(8, 2), 1000);
    const auto first = mixtral.chosen_by(0, 0);
    EXPECT_EQ(std::vector<int>(first.begin(), first.end()), (std::vector<int>{2, 3}));
    EXPECT_EQ(digest(mixtral), 18022092618711412309u);
    RoutingSpec spec = parse_routing("lognormal:1,transition:0.5");
    spec.seed = 99;
    EXPECT_EQ(digest(make_routing(spec, model_of(256, 8, 8, 4), 1000, 3)), 2117577838066232692u);
    EXPECT_EQ(digest(make_routing(parse_routing("zipf:1.2"), model_of(64, 6), 1000, 2)),
              14787705151720569344u);
}

TEST(Routing, begins_the_same_whatever_follows) {
    const RoutingSpec spec = parse_routing("zipf:1,transition:0.5");
    const Routing few = make_routing(spec, model_of(64, 6), 100, 2);
    const Routing many = make_routing(spec, model_of(64, 6), 1000, 4);
    for (int layer = 0; layer < 2; ++layer)
        for (std::int64_t token = 0; token < 100; ++token) {
            const auto a = few.chosen_by(layer, token), b = many.chosen_by(layer, token);
            ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
        }
}

TEST(Routing, differs_by_seed_and_by_layer) {
    RoutingSpec spec = parse_routing("uniform");
    const Routing one = make_routing(spec, model_of(64, 6), 100, 2);
    spec.seed = 2;
    EXPECT_NE(digest(one), digest(make_routing(spec, model_of(64, 6), 100, 2)));
    EXPECT_NE(digest(one_layer(one, 0, 100)), digest(one_layer(one, 1, 100)));
}

TEST(Routing, has_equal_shares_when_uniform) {
    const Routing routing = make_routing(parse_routing("uniform"), model_of(8, 2), 200'000);
    for (const double share : shares_of(routing)) EXPECT_NEAR(share, 0.125, 0.0025);
    const Routing grouped = make_routing(parse_routing("uniform"), model_of(32, 4, 8, 3), 200'000);
    for (const double share : shares_of(grouped)) EXPECT_NEAR(share, 1 / 32.0, 0.001);
}

TEST(Routing, has_the_deviation_asked_for_when_normal) {
    for (const double spread : {0.0, 0.01, 0.032, 0.05}) {
        RoutingSpec spec{RoutingSpec::Shares::normal, spread, 0, 1};
        const Routing routing = make_routing(spec, model_of(8, 2), 200'000, 3);
        for (int layer = 0; layer < 3; ++layer)
            EXPECT_NEAR(deviation(shares_of(routing, layer)), spread, 0.001);
    }
    const Routing grouped =
        make_routing(parse_routing("normal:0.001"), model_of(256, 8, 8, 4), 200'000);
    EXPECT_NEAR(deviation(shares_of(grouped)), 0.001, 0.00005);
}

TEST(Routing, cuts_negative_shares_when_normal_asks_for_them) {
    const auto shares =
        shares_of(make_routing(parse_routing("normal:0.032"), model_of(256, 8), 20'000));
    EXPECT_GT(std::count(shares.begin(), shares.end(), 0.0), 80);
    EXPECT_GT(deviation(shares), 0.004);
}

TEST(Routing, follows_the_law_of_zipf_up_to_once_a_token) {
    auto shares = shares_of(make_routing(parse_routing("zipf:1"), model_of(64, 2), 200'000));
    std::sort(shares.begin(), shares.end(), std::greater<>());
    for (std::size_t rank = 1; rank < 20; ++rank)
        EXPECT_NEAR(shares[0] / shares[rank] / static_cast<double>(rank + 1), 1, 0.05);
    // The second expert wants 2^-10 of the first; no token goes to one twice.
    shares = shares_of(make_routing(parse_routing("zipf:10"), model_of(64, 4), 20'000));
    std::sort(shares.begin(), shares.end(), std::greater<>());
    EXPECT_EQ(shares[0], 0.25);
    EXPECT_EQ(shares[2], 0.25);
}

TEST(Routing, falls_back_to_the_others_when_one_expert_holds_everything) {
    const Routing routing = make_routing(parse_routing("zipf:10"), model_of(65535, 8, 1, 1), 500);
    EXPECT_EQ(routing.chosen.size(), 4000u);
    const Routing all = make_routing(parse_routing("lognormal:10"), model_of(16, 16, 4, 4), 500);
    for (const double share : shares_of(all)) EXPECT_EQ(share, 1 / 16.0);
}

TEST(Routing, takes_a_tokens_experts_from_top_groups_only) {
    const Routing routing = make_routing(parse_routing("lognormal:0.5,transition:0.6"),
                                         model_of(256, 8, 8, 4), 2'000, 3);
    for (int layer = 0; layer < 3; ++layer)
        for (std::int64_t token = 0; token < routing.tokens; ++token) {
            std::set<int> groups;
            for (const auto expert : routing.chosen_by(layer, token)) groups.insert(expert / 32);
            ASSERT_LE(groups.size(), 4u);
        }
}

/// Share of the second layer's choices that are the most frequent ones after their first layer's.
double followed(double transition, const Model& model) {
    const RoutingSpec spec{RoutingSpec::Shares::normal, 0.002, transition, 5};
    const Routing routing = make_routing(spec, model, 50'000, 2);
    const auto experts = static_cast<std::size_t>(model.experts);
    std::vector<std::vector<double>> count(experts, std::vector<double>(experts, 0));
    for (std::int64_t token = 0; token < routing.tokens; ++token)
        for (const auto from : routing.chosen_by(0, token))
            for (const auto to : routing.chosen_by(1, token)) ++count[from][to];
    double most = 0;
    for (const auto& row : count) most += *std::max_element(row.begin(), row.end());
    return most / static_cast<double>(routing.chosen.size() / 2);
}

TEST(Routing, follows_the_last_layer_as_often_as_asked) {
    EXPECT_EQ(followed(1, model_of(64, 6)), 1);
    EXPECT_NEAR(followed(0.7, model_of(64, 6)), 0.7 + 0.3 * 6 / 64, 0.03);
    EXPECT_LT(followed(0, model_of(64, 6)), 0.15);
    EXPECT_EQ(followed(1, model_of(64, 6, 8, 3)), 1);
    EXPECT_GT(followed(0.7, model_of(64, 6, 8, 3)), 0.55);
}

TEST(Routing, keeps_its_shares_over_layers_that_follow_each_other) {
    const Routing routing =
        make_routing(parse_routing("normal:0.032,transition:0.7"), model_of(8, 2), 100'000, 8);
    for (int layer = 0; layer < 8; ++layer)
        EXPECT_NEAR(deviation(shares_of(routing, layer)), 0.032, 0.004);
}

TEST(Routing, gives_every_expert_the_same_when_balanced) {
    // As many tokens as experts, and top_k that divides them or does not.
    for (const auto& [experts, top_k] : {std::pair{256, 8}, {256, 6}, {60, 4}, {7, 7}, {5, 1}}) {
        const Routing routing =
            make_routing(parse_routing("balanced"), model_of(experts, top_k), experts);
        std::vector<int> rows(static_cast<std::size_t>(experts));
        for (const auto expert : routing.chosen) ++rows[expert];
        for (const int count : rows) EXPECT_EQ(count, top_k) << experts << " " << top_k;
    }
}

TEST(Routing, sends_every_token_to_as_many_ranks_as_there_can_be_when_balanced) {
    const Routing routing = make_routing(parse_routing("balanced"), model_of(256, 8), 16);
    for (const int ranks : {1, 2, 4, 8, 16, 32, 64}) {
        std::vector<int> copies(static_cast<std::size_t>(ranks));
        for (std::int64_t token = 0; token < routing.tokens; ++token) {
            std::set<int> reached;
            for (const int expert : routing.chosen_by(0, token))
                reached.insert(expert * ranks / 256);
            EXPECT_EQ(reached.size(), static_cast<std::size_t>(std::min(ranks, 8))) << ranks;
            for (const int rank : reached) ++copies[static_cast<std::size_t>(rank)];
        }
        // Sixteen tokens already load all ranks alike.
        EXPECT_EQ(*std::min_element(copies.begin(), copies.end()),
                  *std::max_element(copies.begin(), copies.end()))
            << ranks;
    }
    EXPECT_THROW(make_routing(parse_routing("balanced"), model_of(256, 8, 8, 4), 16), InputError);
}

TEST(Routing, refuses_sizes_it_cannot_make) {
    const auto refused = [](const Model& model, std::int64_t tokens, int layers) {
        return error_of([&] { make_routing({}, model, tokens, layers); });
    };
    EXPECT_EQ(refused(model_of(0, 0), 1, 1), "routing: experts: found 0, allowed: 1 to 65535");
    EXPECT_EQ(refused(model_of(65536, 1), 1, 1),
              "routing: experts: found 65536, allowed: 1 to 65535");
    EXPECT_EQ(refused(model_of(8, 9), 1, 1), "routing: top_k: found 9, allowed: 1 to 8");
    EXPECT_EQ(refused(model_of(8, 2), 0, 1), "routing: tokens: found 0, allowed: 1 to 2147483648");
    EXPECT_EQ(refused(model_of(8, 2), 1, 0), "routing: layers: found 0, allowed: 1 to 2147483647");
    EXPECT_EQ(refused(model_of(8, 2, 3, 1), 1, 1),
              "routing: expert_groups: found 3, allowed: a divisor of 8 experts");
    EXPECT_EQ(refused(model_of(8, 3, 4, 1), 1, 1),
              "routing: top_k within top_groups: found 3, allowed: 1 to 2");
    EXPECT_EQ(refused(model_of(8, 8), 1LL << 31, 2),
              "routing: found 2147483648 tokens, 2 layers and top_k 8, allowed: at most 8589934592 "
              "in product");
    RoutingSpec spec;
    spec.spread = std::nan("");
    EXPECT_EQ(error_of([&] { make_routing(spec, model_of(8, 2), 1); }),
              "routing: spread of uniform: found no number, allowed: 0 to 0");
}

RC_GTEST_PROP(Routing, gives_every_token_distinct_experts_and_descending_weights_of_sum_1, ()) {
    using Shares = RoutingSpec::Shares;
    RoutingSpec spec;
    spec.shares =
        *rc::gen::element(Shares::uniform, Shares::normal, Shares::zipf, Shares::lognormal);
    const int most = spec.shares == Shares::uniform ? 0 : spec.shares == Shares::normal ? 1 : 10;
    spec.spread = most * *rc::gen::inRange(0, 101) / 100.0;
    spec.transition = *rc::gen::inRange(0, 101) / 100.0;
    spec.seed = *rc::gen::arbitrary<std::uint64_t>();
    const int groups = *rc::gen::inRange(1, 9), size = *rc::gen::inRange(1, 20);
    const int top_groups = *rc::gen::inRange(1, groups + 1);
    const int top_k = *rc::gen::inRange(1, top_groups * size + 1);
    const Model model = model_of(groups * size, top_k, groups, top_groups);
    const Routing routing = make_routing(spec, model, 20, 3);
    RC_ASSERT(routing.chosen.size() == static_cast<std::size_t>(20 * 3 * top_k));
    for (int layer = 0; layer < 3; ++layer)
        for (std::int64_t token = 0; token < 20; ++token) {
            const auto chosen = routing.chosen_by(layer, token);
            const std::set<int> distinct(chosen.begin(), chosen.end());
            RC_ASSERT(distinct.size() == static_cast<std::size_t>(top_k));
            RC_ASSERT(*distinct.rbegin() < model.experts);
            const auto weights = routing.weights_of(layer, token);
            RC_ASSERT(std::is_sorted(weights.rbegin(), weights.rend()));
            RC_ASSERT(weights.back() > 0);
            RC_ASSERT(std::abs(std::accumulate(weights.begin(), weights.end(), 0.0) - 1) < 1e-6);
        }
}

}  // namespace
}  // namespace moehub::routing_test
