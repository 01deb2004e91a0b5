// How much of what dispatch sends is redundant, and how much of what NVLS multicasts is useless?
// Routings that are drawn against the exact expectation, and links against both.
#include "small_layer.hpp"

#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::testing::redundancy_test {
namespace {

/// GPUs with so many experts each; a token chooses k of all at random, each at most once.
struct Spread {
    int gpus;
    int local;
    int k;

    int experts() const { return gpus * local; }
    /// None of `some` experts is chosen: C(n - some, k) / C(n, k).
    double none_of(int some) const {
        double share = 1;
        for (int i = 0; i < k; ++i)
            share *= static_cast<double>(experts() - some - i) / (experts() - i);
        return share;
    }
    double distinct_gpus() const { return gpus * (1 - none_of(local)); }
    double remote_gpus() const { return (gpus - 1) * (1 - none_of(local)); }
    double remote_rows() const { return static_cast<double>(k) * (gpus - 1) / gpus; }
    /// Nothing leaves: all choices are the GPU's own.
    double stays() const { return none_of(experts() - local); }
    /// The share of what goes up a token's link that is not its first copy.
    double redundant(double copies) const { return 1 - (1 - stays()) / copies; }
};

struct Counts {
    double tokens = 0;
    double leaving = 0;   ///< tokens with an expert elsewhere
    double distinct = 0;  ///< GPUs of tokens
    double gpus = 0;      ///< GPUs that tokens need, other than their own
    double rows = 0;      ///< rows for other GPUs
    double row_pairs = 0;
};

Counts count(const Routing& routing, const Spread& spread) {
    Counts counts;
    counts.tokens = static_cast<double>(routing.tokens);
    for (std::int64_t token = 0; token < routing.tokens; ++token) {
        const auto home = static_cast<int>(token * spread.gpus / routing.tokens);
        std::set<int> gpus;
        for (const int expert : routing.chosen_by(0, token)) {
            gpus.insert(expert / spread.local);
            counts.rows += expert / spread.local != home;
            ++counts.row_pairs;
        }
        counts.distinct += static_cast<double>(gpus.size());
        const double others = static_cast<double>(gpus.size() - gpus.count(home));
        counts.gpus += others;
        counts.leaving += others > 0;
    }
    return counts;
}

TEST(Redundancy, of_uniform_routing_is_the_hypergeometric_expectation) {
    // 4,096 tokens: a deviation of d of about 1.5 at most is 0.024 in the mean.
    for (const int k : {8, 16, 32}) {
        const Spread spread{32, 8, k};
        const Model model = small_model(spread.experts(), k);
        const Counts counts = count(make_routing({}, model, 4096), spread);
        const double t = counts.tokens;
        EXPECT_NEAR(counts.distinct / t, spread.distinct_gpus(), 0.08) << "top-" << k;
        EXPECT_NEAR(counts.gpus / t, spread.remote_gpus(), 0.08);
        EXPECT_NEAR(counts.rows / t, spread.remote_rows(), 0.08);
        EXPECT_NEAR(1 - counts.leaving / counts.rows, spread.redundant(spread.remote_rows()), 0.002)
            << "each row by itself";
        EXPECT_NEAR(1 - counts.leaving / counts.gpus, spread.redundant(spread.remote_gpus()), 0.004)
            << "each GPU by itself";
    }
    // d = 32 · (1 − C(248, 8) / C(256, 8)), and so on, once more by hand.
    EXPECT_NEAR((Spread{32, 8, 8}.distinct_gpus()), 7.267, 0.001);
    EXPECT_NEAR((Spread{32, 8, 16}.distinct_gpus()), 13.047, 0.001);
    EXPECT_NEAR((Spread{32, 8, 32}.distinct_gpus()), 21.179, 0.001);
}

/// A small case that is run: four GPUs, four experts each, top-6.
struct Small {
    Spread spread{4, 4, 6};
    Case layer;
    Routing routing;
    Counts counts;
    Bytes row;

    Small() {
        layer.machine = small_gpus(spread.gpus);
        layer.model = small_model(spread.experts(), spread.k);
        layer.tokens = 1024;
        routing = make_routing({}, layer.model, layer.tokens);
        counts = count(routing, spread);
        row = layer.model.hidden * 2;
    }
    LayerResult run(const std::string& name) const { return layer.run(name, routing); }
};

TEST(Redundancy, dysharp_moves_each_copy_down_and_one_of_each_token_up) {
    const Small small;
    const LayerResult result = small.run("dysharp");
    const Bytes sent = small.row + 4 * small.spread.k;  // a row and its weights
    // What comes to GPUs: copies of tokens, one sum each, notices of rows, counts.
    const double dispatch = small.counts.gpus * static_cast<double>(sent);
    const double combine = small.counts.leaving * static_cast<double>(small.row);
    const double notices = 16 * small.counts.rows;
    const double counts = 4.0 * small.spread.local * 4 * 3;
    EXPECT_EQ(static_cast<double>(result.payload), dispatch + combine + notices + counts);
    // And against the expectation alone.
    const double t = small.counts.tokens;
    const double expected = t * (small.spread.remote_gpus() * static_cast<double>(sent) +
                                 (1 - small.spread.stays()) * static_cast<double>(small.row) +
                                 16 * small.spread.remote_rows());
    EXPECT_NEAR(static_cast<double>(result.payload), expected, 0.02 * expected);
}

/// Flits of one packet by itself and of a list, both with their acknowledgements and answers.
TEST(Redundancy, what_goes_up_falls_by_the_redundant_copies) {
    const Small small;
    const LayerResult listed = small.run("dysharp");
    const LayerResult alone = small.run("fusion-only");
    const auto packets = static_cast<double>((small.row + 4 * small.spread.k + 127) / 128);
    const double flits = packets + static_cast<double>((small.row + 4 * small.spread.k + 15) / 16);
    const auto lines = static_cast<double>(small.row / 128);
    // Up, by itself: copies and requests for rows, acknowledgements and rows; with lists: one copy
    // and one request of a token (a flit of its list each), and of each GPU one answer.
    const double by_itself =
        small.counts.gpus * (flits + packets) + small.counts.rows * (lines + 9 * lines);
    const double by_list = small.counts.leaving * (flits + packets + 2 * lines) +
                           small.counts.gpus * (packets + 9 * lines);
    // Notices hold as many tokens as a tile has of a GPU: nearly as many packets in both.
    const double saved = 16 * (by_itself - by_list);
    EXPECT_NEAR(static_cast<double>(alone.bytes_up - listed.bytes_up), saved, 2e-3 * saved);
}

TEST(Redundancy, nvls_takes_to_every_gpu_what_few_of_its_experts_want) {
    const Small small;
    const LayerResult result = small.run("nvls");
    const double t = small.counts.tokens;
    const auto gathered = static_cast<double>(small.row + 12 * small.spread.k);
    // All tokens come to all four GPUs, their own among them; sums of one's own tokens; flags.
    const double all = t * (4 * gathered + static_cast<double>(small.row));
    EXPECT_NEAR(static_cast<double>(result.payload), all, 1e-3 * all);
    // Share of what comes in the gathering that no expert there wants.
    const double useless = 1 - small.counts.distinct / (4 * t);
    EXPECT_NEAR(useless, small.spread.none_of(small.spread.local), 0.01);
    EXPECT_NEAR(useless, 1 - small.spread.distinct_gpus() / 4, 0.01);
    // With 32 GPUs and top-8 more than three quarters.
    EXPECT_NEAR((Spread{32, 8, 8}.none_of(8)), 0.773, 0.001);
}

}  // namespace
}  // namespace moehub::testing::redundancy_test
