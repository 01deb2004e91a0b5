// Are loads, mended swap by swap, what they are from scratch; and are caps kept where they can be?
#include "place/search/loads.hpp"
#include "place_ready.hpp"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace moehub::place_loads_test {
namespace {

std::size_t at(int index) {
    return static_cast<std::size_t>(index);
}

/// Every GPU's load over the mean, by the counts of one view.
std::vector<double> ratios(const Ready& ready, int layer, const std::vector<double>& counts) {
    std::vector<double> loads(at(ready.gpus));
    const LayerItems& items = ready.items[at(layer)];
    for (int item = 0; item < items.size(); ++item) {
        const int expert = items.expert[at(item)];
        loads[at(ready.item_gpus[at(layer)][at(item)])] +=
            counts[at(expert)] / items.copies(expert);
    }
    const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / ready.gpus;
    for (double& load : loads) load = mean > 0 ? load / mean : 0;
    return loads;
}

struct LoadSums {
    double value = 0;
    double unevenness = 0;
    double excess = 0;
};
LoadSums loads_of(const Ready& ready, int layer, const std::vector<LoadView>& views) {
    LoadSums sums;
    for (const LoadView& view : views) {
        const std::vector<double> loads = ratios(ready, layer, view.counts);
        sums.value += view.weight * *std::max_element(loads.begin(), loads.end());
        for (const double load : loads) {
            sums.unevenness += view.weight * (load - 1) * (load - 1) / ready.gpus;
            if (view.cap > 0 && load > view.cap)
                sums.excess += (load - view.cap) * (load - view.cap);
        }
    }
    return sums;
}

TEST(Loads, are_after_swaps_what_they_are_from_scratch) {
    for (std::size_t number = 0; number < ready_sizes().size(); ++number) {
        SCOPED_TRACE("size " + std::to_string(number));
        Ready ready(ready_sizes()[number], number);
        const LoadViews all(ready.profiles, 1.2, number % 2 == 0 ? 3 : 1);
        std::vector<Loads> loads;
        for (int layer = 0; layer < static_cast<int>(ready.item_gpus.size()); ++layer) {
            loads.emplace_back(all.of(layer), ready.items[at(layer)], ready.gpus);
            loads.back().place(ready.item_gpus[at(layer)]);
        }
        for (int step = 0; step < 100; ++step) {
            const Ready::Pair pair = ready.any_pair();
            if (ready.item_gpus[at(pair.layer)][at(pair.a)] ==
                ready.item_gpus[at(pair.layer)][at(pair.b)])
                continue;
            Loads& own = loads[at(pair.layer)];
            const double value = own.value() + own.change(pair.a, pair.b);
            const double uneven = own.unevenness() + own.unevenness_change(pair.a, pair.b);
            own.swap(pair.a, pair.b);
            ready.swap(pair);
            const LoadSums anew = loads_of(ready, pair.layer, all.of(pair.layer));
            ASSERT_EQ(own.gpu_of(), ready.item_gpus[at(pair.layer)]);
            EXPECT_NEAR(own.value(), anew.value, 1e-9);
            EXPECT_NEAR(own.value(), value, 1e-9);
            EXPECT_NEAR(own.unevenness(), anew.unevenness, 1e-9);
            EXPECT_NEAR(own.unevenness(), uneven, 1e-9);
            EXPECT_NEAR(own.excess(), anew.excess, 1e-7);
        }
    }
}

TEST(Loads, allow_no_cap_to_be_broken_further_and_no_second_copy) {
    Ready ready({{1, 8, 2, 80}, 2, 4, 4}, 7);
    const std::vector<LoadView> views = LoadViews(ready.profiles, 1.3, 2).of(0);
    Loads loads(views, ready.items[0], ready.gpus);
    ready.item_gpus[0] = longest_first(views[0].counts, ready.items[0], ready.gpus);
    loads.place(ready.item_gpus[0]);
    const auto most = [&](int view, int one, int other) {
        const std::vector<double> now = ratios(ready, 0, views[at(view)].counts);
        return std::max(now[at(one)], now[at(other)]);
    };
    int allowed = 0;
    for (int step = 0; step < 500; ++step) {
        const Ready::Pair pair = ready.any_pair();
        const int g = ready.item_gpus[0][at(pair.a)];
        const int h = ready.item_gpus[0][at(pair.b)];
        // Copies of one expert that swap with each other change nothing, and are not asked about.
        if (g == h || ready.items[0].expert[at(pair.a)] == ready.items[0].expert[at(pair.b)])
            continue;
        std::vector<double> before;
        for (int view = 0; view < static_cast<int>(views.size()); ++view)
            before.push_back(most(view, g, h));
        const bool allows = loads.allows(pair.a, pair.b);
        ready.swap(pair);
        double over = -1;  // worst view's; loads that only change places are even up to rounding
        for (int view = 0; view < static_cast<int>(views.size()); ++view)
            over = std::max(over, most(view, g, h) - std::max(1.3, before[at(view)]));
        bool apart = true;
        std::set<std::pair<int, int>> held;
        for (int item = 0; item < ready.items[0].size(); ++item)
            apart =
                apart &&
                held.insert({ready.items[0].expert[at(item)], ready.item_gpus[0][at(item)]}).second;
        if (allows) {
            EXPECT_TRUE(apart) << "step " << step;
            EXPECT_LE(over, 1e-8) << "step " << step;
            loads.swap(pair.a, pair.b);
            ++allowed;
        } else {
            EXPECT_TRUE(!apart || over > -1e-8) << "step " << step;
            ready.swap(pair);
        }
    }
    EXPECT_GT(allowed, 10);
}

TEST(Loads, keep_caps_that_can_be_kept_and_raise_the_others) {
    Ready ready({{1, 16, 4, 300}, 1, 4, 0}, 8);
    Rng rng(1);
    const auto placed = [&](double cap) {
        Loads loads(LoadViews(ready.profiles, cap, 1).of(0), ready.items[0], 4);
        loads.place(ready.item_gpus[0]);
        return loads;
    };
    Loads loose = placed(1.05);
    ASSERT_GT(loose.excess(), 0);
    EXPECT_TRUE(loose.keep_caps(rng, [] { return false; }));
    EXPECT_EQ(loose.excess(), 0);
    EXPECT_LE(loose.value(), 1.05 + 1e-8);
    EXPECT_EQ(loose.give_in(), 0);
    Loads tight = placed(1);
    EXPECT_FALSE(tight.keep_caps(rng, [] { return false; }));
    const double needed = tight.give_in();
    EXPECT_NEAR(needed, tight.value(), 1e-12);
    EXPECT_LE(needed, loose.value());
    EXPECT_EQ(tight.excess(), 0);
}

TEST(LongestFirst, fills_every_gpu_and_keeps_copies_apart) {
    Rng rng(9);
    for (int trial = 0; trial < 200; ++trial) {
        const int gpus = 2 + static_cast<int>(rng.below(5));
        const int slots = gpus * (1 + static_cast<int>(rng.below(4)));
        const int experts = std::max(2, slots - static_cast<int>(rng.below(at(slots))));
        if (slots > experts * gpus) continue;
        std::vector<double> counts;
        for (int expert = 0; expert < experts; ++expert)
            counts.push_back(static_cast<double>(rng.below(40) * rng.below(40)));
        const LayerItems items = items_of(copies_of(counts, slots));
        const std::vector<int> gpu_of = longest_first(counts, items, gpus);
        std::vector<int> held(at(gpus));
        for (const int gpu : gpu_of) ++held[at(gpu)];
        EXPECT_EQ(held, std::vector<int>(at(gpus), slots / gpus)) << "trial " << trial;
        for (int expert = 0; expert < experts; ++expert) {
            const auto begin = gpu_of.begin() + items.first[at(expert)];
            const std::set<int> there(begin, begin + items.copies(expert));
            EXPECT_EQ(static_cast<int>(there.size()), std::min(gpus, items.copies(expert)))
                << "trial " << trial;
        }
    }
}

}  // namespace
}  // namespace moehub::place_loads_test
