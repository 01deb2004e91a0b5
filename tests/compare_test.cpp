// The library call behind `moehub compare`.
#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <stdexcept>

#include <gtest/gtest.h>

namespace moehub {
namespace {

class Compare : public testing::Test {
  protected:
    LayerInput input() const { return {machine_, model_, routing_, placement_}; }

    const Machine machine_ = with_gpus(load_machine("dgx-h800"), 4);
    const Model model_ = load_model("mixtral-8x7b");
    const Routing routing_ = make_routing(parse_routing("zipf:1"), model_, 128);
    const Placement placement_ = contiguous_placement(model_.experts, 4);
};

TEST_F(Compare, AreSpeedupsOverMegatronWhereverItStands) {
    const Comparison all = compare(input(), {"moe-hub", "megatron-te", "ideal"});
    EXPECT_EQ(all.baseline, "megatron-te");
    ASSERT_EQ(all.rows.size(), 3u);
    EXPECT_EQ(all.rows[0].result.system, "moe-hub");
    EXPECT_GT(all.rows[0].speedup, 1);
    EXPECT_EQ(all.rows[1].speedup, 1);
    EXPECT_EQ(all.rows[2].share_of_ideal, 1.0);
    EXPECT_LT(*all.rows[1].share_of_ideal, 1);
}

TEST_F(Compare, IsTheBaselineOtherwiseTheSlowest) {
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

TEST_F(Compare, IsEachSystemReportedOnce) {
    CompareOptions options;
    options.threads = 3;
    std::vector<std::size_t> reports;  // no lock: one thread at a time
    options.progress = [&](std::size_t done, std::size_t total) {
        EXPECT_EQ(total, 3u);
        reports.push_back(done);
    };
    compare(input(), {"ideal", "moe-hub", "megatron-te"}, options);
    EXPECT_EQ(reports, (std::vector<std::size_t>{1, 2, 3}));
}

TEST_F(Compare, IsTheFirstFailureTheOneThatIsTold) {
    CompareOptions options;
    options.threads = 2;
    options.layer.region_rows = 1;  // too few for moe-hub, of no matter to ideal
    EXPECT_THROW(compare(input(), {"ideal", "moe-hub", "mh-base"}, options), InputError);
    options.layer.region_rows = 0;
    options.progress = [](std::size_t, std::size_t) { throw std::runtime_error("enough"); };
    EXPECT_THROW(compare(input(), {"ideal", "moe-hub"}, options), std::runtime_error);
}

TEST_F(Compare, AreNamesCheckedBeforeAnythingRuns) {
    EXPECT_THROW(compare(input(), {}), InputError);
    EXPECT_THROW(compare(input(), {"ideal", "nobody"}), InputError);
    EXPECT_THROW(compare(input(), {"ideal", "ideal"}), InputError);
}

}  // namespace
}  // namespace moehub
