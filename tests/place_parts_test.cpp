// The search's parts keep tables and mend them swap by swap. Are they, after many swaps, what they
// would be from scratch, and does a swap change what it was said to change?
#include "place/assignment.hpp"
#include "place/search/chain.hpp"
#include "place/search/spread.hpp"
#include "place_ready.hpp"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace moehub::place_parts_test {
namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

std::int64_t distinct(const Ready& ready, int layer) {
    const LayerTokens& tokens = ready.tokens[at(layer)];
    std::int64_t total = 0;
    for (std::size_t token = 0; token < tokens.size(); ++token) {
        std::set<int> domains;
        for (const std::uint16_t item : tokens.of(token))
            if (item != tokens.nobody()) domains.insert(ready.item_gpus[at(layer)][item]);
        total += ready.sample->weight(token / 64) * static_cast<std::int64_t>(domains.size());
    }
    return total;
}

TEST(Spread, is_after_swaps_what_it_is_from_scratch) {
    for (std::size_t number = 0; number < ready_sizes().size(); ++number) {
        SCOPED_TRACE("size " + std::to_string(number));
        Ready ready(ready_sizes()[number], number);
        std::vector<Spread> spread;
        for (std::size_t layer = 0; layer < ready.item_gpus.size(); ++layer) {
            spread.emplace_back(ready.tokens[layer], ready.item_gpus[layer], ready.gpus);
            ASSERT_EQ(spread[layer].total(), distinct(ready, static_cast<int>(layer)));
        }
        for (int step = 0; step < 100; ++step) {
            const Ready::Pair pair = ready.any_pair();
            Spread& own = spread[at(pair.layer)];
            const std::int64_t least = own.least_change(pair.a, pair.b);
            const std::int64_t change = own.change(pair.a, pair.b, least);
            const std::int64_t before = own.total();
            EXPECT_LE(least, change);
            own.swap(pair.a, pair.b);
            ready.swap(pair);
            ASSERT_EQ(own.total(), before + change) << "step " << step;
            ASSERT_EQ(own.total(), distinct(ready, pair.layer)) << "step " << step;
            const Spread anew(ready.tokens[at(pair.layer)], ready.item_gpus[at(pair.layer)],
                              ready.gpus);
            const Ready::Pair other = ready.any_pair();
            if (other.layer != pair.layer) continue;
            ASSERT_EQ(own.least_change(other.a, other.b), anew.least_change(other.a, other.b));
        }
    }
}

/// Weighted transitions between pairs of domains, lower first.
std::map<std::pair<int, int>, double> moves_of(const Ready& ready) {
    std::map<std::pair<int, int>, double> moves;
    const std::vector<int> weights = transition_weights(ready.tokens);
    for (std::size_t layer = 0; layer + 1 < ready.item_gpus.size(); ++layer) {
        const LayerTokens& here = ready.tokens[layer];
        const LayerTokens& next = ready.tokens[layer + 1];
        for (std::size_t token = 0; token < here.size(); ++token)
            for (const std::uint16_t from : here.of(token))
                for (const std::uint16_t to : next.of(token))
                    if (from != here.nobody() && to != next.nobody())
                        moves[std::minmax(ready.item_gpus[layer][from],
                                          ready.item_gpus[layer + 1][to])] +=
                            weights[at(ready.sample->profile(token / 64))];
    }
    return moves;
}

struct Transitions {
    double off = 0;
    double heaviest = 0;
    double norm = 0;
};
Transitions transitions_of(const Ready& ready) {
    double all = 0;
    for (const auto& [pair, count] : moves_of(ready)) all += count;
    Transitions sums;
    if (all <= 0) return sums;
    const double even = 2 * all / (ready.gpus * ready.gpus);
    double powers = 0;
    for (const auto& [pair, count] : moves_of(ready)) {
        if (pair.first == pair.second) continue;
        sums.off += count / all;
        sums.heaviest = std::max(sums.heaviest, count / even);
        powers += std::pow(count / even, 8);
    }
    if (ready.gpus > 1) sums.norm = std::pow(2 * powers / (ready.gpus * (ready.gpus - 1)), 1.0 / 8);
    return sums;
}

TEST(Chain, is_after_swaps_what_it_is_from_scratch) {
    for (std::size_t number = 0; number < ready_sizes().size(); ++number) {
        SCOPED_TRACE("size " + std::to_string(number));
        Ready ready(ready_sizes()[number], number);
        Chain chain(ready.tokens, ready.item_gpus, ready.gpus);
        for (int step = 0; step < 60; ++step) {
            const Ready::Pair pair = ready.any_pair();
            const double off = chain.off_domain_change(pair.layer, pair.a, pair.b);
            const double norm = chain.pair_norm_change(pair.layer, pair.a, pair.b);
            const double off_before = chain.off_domain();
            const double norm_before = chain.pair_norm();
            chain.swap(pair.layer, pair.a, pair.b);
            ready.swap(pair);
            const Transitions anew = transitions_of(ready);
            ASSERT_EQ(chain.domain_of(pair.layer), ready.item_gpus[at(pair.layer)]);
            ASSERT_NEAR(chain.off_domain(), anew.off, 1e-12) << "step " << step;
            ASSERT_NEAR(chain.heaviest_pair(), anew.heaviest, 1e-12) << "step " << step;
            ASSERT_NEAR(chain.pair_norm(), anew.norm, 1e-9) << "step " << step;
            EXPECT_LE(chain.pair_norm(), chain.heaviest_pair() + 1e-9);
            EXPECT_NEAR(chain.off_domain() - off_before, off, 1e-12);
            EXPECT_NEAR(chain.pair_norm() - norm_before, norm, 1e-9);
        }
    }
}

TEST(Chain, knows_where_transitions_came_from) {
    Ready ready({{3, 12, 4, 100}, 2, 3, 0}, 4);
    const Chain chain(ready.tokens, ready.item_gpus, ready.gpus);
    Matrix sums(3, 3);
    const std::vector<int> weights = transition_weights(ready.tokens);
    const LayerTokens& before = ready.tokens[1];
    const LayerTokens& here = ready.tokens[2];
    for (std::size_t token = 0; token < here.size(); ++token)
        for (const std::uint16_t from : before.of(token))
            for (const std::uint16_t to : here.of(token))
                if (from != before.nobody() && to != here.nobody())
                    sums(ready.item_gpus[2][to], ready.item_gpus[1][from]) +=
                        weights[at(ready.sample->profile(token / 64))];
    EXPECT_EQ(chain.from_before(2).at_, sums.at_);
}

double awake_of(const Ready& ready, int layer, std::size_t batch) {
    const LayerTokens& tokens = ready.tokens[at(layer)];
    std::vector<std::size_t> real;
    for (std::size_t token = 0; token < tokens.size(); ++token)
        if (ready.sample->tokens()[token].profile >= 0) real.push_back(token);
    batch = std::min(batch, real.size());
    double sum = 0;
    double count = 0;
    for (std::size_t begin = 0; begin + batch <= real.size(); begin += batch) {
        std::set<int> awake;
        for (std::size_t number = begin; number < begin + batch; ++number)
            for (const std::uint16_t item : tokens.of(real[number]))
                if (item != tokens.nobody()) awake.insert(item);
        std::vector<double> of_gpu(at(ready.gpus));
        for (const int item : awake) of_gpu[at(ready.item_gpus[at(layer)][at(item)])] += 1;
        const double most = *std::max_element(of_gpu.begin(), of_gpu.end());
        sum += awake.empty() ? 1 : most * ready.gpus / static_cast<double>(awake.size());
        count += 1;
    }
    return sum / count;
}

TEST(Activated, is_after_swaps_what_it_is_from_scratch) {
    for (std::size_t number = 0; number < ready_sizes().size(); ++number) {
        SCOPED_TRACE("size " + std::to_string(number));
        Ready ready(ready_sizes()[number], number);
        const int batch = number % 2 == 0 ? 7 : 3;
        std::vector<Activated> activated;
        for (std::size_t layer = 0; layer < ready.item_gpus.size(); ++layer)
            activated.emplace_back(ready.tokens[layer], ready.item_gpus[layer], ready.gpus, batch);
        for (int step = 0; step < 40; ++step) {
            const Ready::Pair pair = ready.any_pair();
            Activated& own = activated[at(pair.layer)];
            const double said = own.value() + own.change(pair.a, pair.b);
            own.swap(pair.a, pair.b);
            ready.swap(pair);
            ASSERT_NEAR(own.value(), awake_of(ready, pair.layer, at(batch)), 1e-9);
            EXPECT_NEAR(own.value(), said, 1e-9);
        }
    }
}

TEST(TokenSample, takes_all_where_there_are_few) {
    const Profile profile = random_profile({1, 8, 2, 100}, 1);
    const TokenSample sample({profile}, 100);
    EXPECT_EQ(sample.words(), 2U);
    EXPECT_EQ(sample.tokens().size(), 128U);
    EXPECT_EQ(sample.total_weight(), 100);
    for (std::size_t token = 0; token < sample.tokens().size(); ++token) {
        const bool real = token < 100;
        EXPECT_EQ(sample.tokens()[token].profile, real ? 0 : -1);
        EXPECT_EQ(sample.tokens()[token].token, real ? static_cast<std::int64_t>(token) : 0);
    }
}

TEST(TokenSample, picks_evenly_and_weighs_by_profile) {
    std::vector<Profile> profiles{random_profile({1, 8, 2, 3000}, 1),
                                  random_profile({1, 8, 3, 500}, 2)};
    profiles[1].weight = 3;
    const TokenSample sample(profiles, 700);
    EXPECT_EQ(sample.top_k(), 3);
    std::vector<std::vector<std::int64_t>> picked(2);
    std::vector<double> weight(2);
    for (std::size_t token = 0; token < sample.tokens().size(); ++token) {
        const auto& one = sample.tokens()[token];
        if (one.profile < 0) continue;
        picked[at(one.profile)].push_back(one.token);
        weight[at(one.profile)] += sample.weight(token / 64);
    }
    EXPECT_EQ(picked[0].size() + picked[1].size(), 700U);
    for (std::size_t profile = 0; profile < 2; ++profile)
        for (std::size_t pick = 1; pick < picked[profile].size(); ++pick) {
            const std::int64_t gap = picked[profile][pick] - picked[profile][pick - 1];
            const std::int64_t even = profile == 0 ? 15 : 1;  // 200 of 3,000, and all 500
            EXPECT_TRUE(gap == even) << gap;
        }
    EXPECT_NEAR(weight[1] / weight[0], 3, 0.1);
    EXPECT_EQ(sample.total_weight(), static_cast<std::int64_t>(weight[0] + weight[1]));
}

TEST(LayerTokens, spread_over_the_copies) {
    const std::vector<Profile> profiles{random_profile({1, 4, 2, 90}, 3)};
    const TokenSample sample(profiles, 1000);
    const LayerItems items = items_of({3, 1, 2, 1});
    EXPECT_EQ(items.size(), 7);
    EXPECT_EQ(items.expert, (std::vector<int>{0, 0, 0, 1, 2, 2, 3}));
    const LayerTokens tokens(profiles, sample, items, 0);
    EXPECT_EQ(tokens.nobody(), 7);
    for (std::size_t token = 0; token < 90; ++token) {
        std::multiset<int> chosen;
        for (const std::uint16_t expert :
             profiles[0].chosen_by(0, static_cast<std::int64_t>(token)))
            if (expert != Profile::kNobody) chosen.insert(expert);
        std::multiset<int> seen;
        for (const std::uint16_t item : tokens.of(token)) {
            if (item == tokens.nobody()) continue;
            const int expert = items.expert[item];
            EXPECT_EQ(item - items.first[at(expert)],
                      static_cast<int>(token) % items.copies(expert));
            seen.insert(expert);
        }
        EXPECT_EQ(seen, chosen);
    }
}

TEST(Relabel, is_the_best_that_keeps_nodes_together) {
    Rng rng(2);
    for (const int nodes : {1, 2, 3, 6})
        for (int trial = 0; trial < 10; ++trial) {
            Matrix gain(6, 6);
            for (double& value : gain.at_) value = static_cast<double>(rng.below(20));
            const auto total = [&](const std::vector<int>& labels) {
                double sum = 0;
                for (int gpu = 0; gpu < 6; ++gpu) sum += gain(gpu, labels[at(gpu)]);
                return sum;
            };
            const auto together = [&](const std::vector<int>& labels) {
                const int each = 6 / nodes;
                for (int gpu = 0; gpu < 6; ++gpu)
                    if (labels[at(gpu)] / each != labels[at(gpu / each * each)] / each)
                        return false;
                return true;
            };
            std::vector<int> labels{0, 1, 2, 3, 4, 5};
            double best = 0;
            do
                if (together(labels)) best = std::max(best, total(labels));
            while (std::next_permutation(labels.begin(), labels.end()));
            std::vector<int> found = best_labels(gain, nodes);
            EXPECT_TRUE(together(found));
            EXPECT_EQ(total(found), best) << nodes << " nodes, trial " << trial;
            std::sort(found.begin(), found.end());
            EXPECT_EQ(found, (std::vector<int>{0, 1, 2, 3, 4, 5}));
        }
}

}  // namespace
}  // namespace moehub::place_parts_test
