// The library call behind `moehub compare`.
#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

namespace moehub::compare_test {
namespace {

class Compare : public ::testing::Test {
  protected:
    LayerInput input() const { return {machine_, model_, routing_, placement_}; }

    const Machine machine_ = with_gpus(load_machine("dgx-h800"), 4);
    const Model model_ = load_model("mixtral-8x7b");
    const Routing routing_ = make_routing(parse_routing("zipf:1"), model_, 128);
    const Placement placement_ = contiguous_placement(model_.experts, 4);
};

TEST_F(Compare, speedups_are_over_megatron_wherever_it_stands) {
    const Comparison all = compare(input(), {"moe-hub", "megatron-te", "ideal"});
    EXPECT_EQ(all.baseline, "megatron-te");
    ASSERT_EQ(all.rows.size(), 3u);
    EXPECT_EQ(all.rows[0].result.system, "moe-hub");
    EXPECT_GT(all.rows[0].speedup, 1);
    EXPECT_EQ(all.rows[1].speedup, 1);
    EXPECT_EQ(all.rows[2].share_of_ideal, 1.0);
    EXPECT_LT(*all.rows[1].share_of_ideal, 1);
}

TEST_F(Compare, the_baseline_is_otherwise_the_slowest) {
    const Comparison all = compare(input(), {"mh-base", "moe-hub", "mh-pkt"});
    for (const ComparisonRow& row : all.rows) {
        EXPECT_GE(row.speedup, 1) << row.result.system;
        EXPECT_FALSE(row.share_of_ideal.has_value());
    }
}

TEST_F(Compare, threads_get_the_same_result) {
    const std::vector<std::string> systems = {"ideal", "megatron-te", "moe-hub", "mh-base"};
    CompareOptions options;
    options.threads = 1;
    const Comparison one = compare(input(), systems, options);
    options.threads = 4;
    const Comparison four = compare(input(), systems, options);
    for (std::size_t i = 0; i < systems.size(); ++i) {
        EXPECT_EQ(one.rows[i].result.time, four.rows[i].result.time);
        EXPECT_EQ(one.rows[i].result.events, four.rows[i].result.events);
        EXPECT_EQ(one.rows[i].result.bytes_up, four.rows[i].result.bytes_up);
    }
}

using Reports = std::vector<std::pair<std::size_t, std::size_t>>;

Reports reports_of(const LayerInput& input, const std::vector<SystemSpec>& systems, int threads) {
    CompareOptions options;
    options.threads = threads;
    Reports reports;  // no lock: one thread at a time
    options.progress = [&](std::size_t done, std::size_t known) {
        reports.emplace_back(done, known);
    };
    compare_systems(input, systems, options);
    return reports;
}

TEST_F(Compare, each_system_is_reported_once) {
    EXPECT_EQ(reports_of(input(), load_systems({"ideal", "moe-hub", "dysharp"}), 3),
              (Reports{{1, 3}, {2, 3}, {3, 3}}));
}

TEST_F(Compare, every_round_of_an_eager_host_is_reported) {
    // The host has more to do than its GPU: the lead that it starts with takes rounds to find.
    Model small = model_;
    small.hidden = small.expert_ffn = 256;
    const LayerInput short_one{with_gpus(machine_, 1), small,
                               make_routing(parse_routing("uniform"), small, 16),
                               contiguous_placement(small.experts, 1)};
    const Reports reports = reports_of(short_one, load_systems({"torch"}), 1);
    ASSERT_GT(reports.size(), 1u);
    for (std::size_t i = 0; i < reports.size(); ++i) {
        EXPECT_EQ(reports[i].first, i + 1);
        EXPECT_EQ(reports[i].second, std::min(i + 2, reports.size()));
    }
}

TEST_F(Compare, ideals_of_other_formats_are_reported) {
    std::vector<SystemSpec> systems = load_systems({"ideal", "moe-hub"});
    systems[1].expert_format = NumberFormat::fp8;
    systems[1].dispatch_element = 1;
    EXPECT_EQ(reports_of(input(), systems, 2), (Reports{{1, 3}, {2, 3}, {3, 3}}));
    const Comparison both = compare_systems(input(), systems, {});
    ASSERT_EQ(both.rows.size(), 2u);
    ASSERT_TRUE(both.other_ideal.has_value());
    EXPECT_LT(*both.other_ideal, both.rows[0].result.time);
}

TEST_F(Compare, the_first_failure_is_the_one_that_is_told) {
    CompareOptions options;
    options.threads = 2;
    options.layer.region_rows = 1;  // too few for moe-hub, of no matter to ideal
    EXPECT_THROW(compare(input(), {"ideal", "moe-hub", "mh-base"}, options), InputError);
    options.layer.region_rows = 0;
    options.progress = [](std::size_t, std::size_t) { throw std::runtime_error("enough"); };
    EXPECT_THROW(compare(input(), {"ideal", "moe-hub"}, options), std::runtime_error);
}

TEST_F(Compare, names_are_checked_before_anything_runs) {
    EXPECT_THROW(compare(input(), {}), InputError);
    EXPECT_THROW(compare(input(), {"ideal", "nobody"}), InputError);
    EXPECT_THROW(compare(input(), {"ideal", "ideal"}), InputError);
}

}  // namespace
}  // namespace moehub::compare_test
