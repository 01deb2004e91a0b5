// Do DeepEP's kernels take as long as measured inside one node, and does their speed follow from
// the SMs that they are given?
#include "small_layer.hpp"

#include <moehub/validate.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::testing::deepep_test {
namespace {

struct Trial {
    const char* machine = "dgx-h200";
    int gpus = 8;
    std::int64_t tokens = 512;  ///< tokens of one GPU
    Model model = small_model(256, 8, 7168);

    LayerResult operator()(const char* system, const Overrides& overrides = {}) const {
        const Machine sized = with_gpus(load_machine(machine), gpus);
        const Routing made = make_routing(parse_routing("uniform"), model, tokens * gpus);
        const Placement placement = contiguous_placement(model.experts, gpus);
        LayerOptions options;
        options.compute = false;
        return simulate_layer({sized, model, made, placement}, load_system(system, overrides),
                              options);
    }
    LayerResult on(int sms) const {
        return (*this)("deepep", {fmt::format("communication_sms={}", sms)});
    }
};

double microseconds(Ps time) {
    return to_seconds(time) * 1e6;
}

// Where the link binds already, 24 SMs were measured 1.6 % slower than 20: within 2 % is as fast.
TEST(DeepEp, more_sms_are_never_slower) {
    const auto most = [](Ps before) { return before + before / 50; };
    Trial run;
    for (const char* machine : {"dgx-h200", "dgx-b200"}) {
        run.machine = machine;
        LayerResult before = run.on(4);
        for (const int sms : {8, 12, 16, 20, 24}) {
            LayerResult now = run.on(sms);
            EXPECT_LE(now.dispatch, most(before.dispatch)) << machine << sms;
            EXPECT_LE(now.combine, most(before.combine)) << machine << sms;
            before = std::move(now);
        }
    }
}

TEST(DeepEp, time_falls_with_the_sms_until_the_link_binds) {
    // Without starts: what 512 tokens more take. The fullest lane decides, and lanes of fewer
    // tokens differ more.
    const auto slope = [](int sms) {
        Trial run;
        const LayerResult some = run.on(sms);
        run.tokens = 1024;
        const LayerResult more = run.on(sms);
        return std::pair(microseconds(more.dispatch - some.dispatch),
                         microseconds(more.combine - some.combine));
    };
    const auto [dispatch4, combine4] = slope(4);
    const auto [dispatch8, combine8] = slope(8);
    EXPECT_NEAR(dispatch4 / dispatch8, 2, 0.2);
    EXPECT_NEAR(combine4 / combine8, 2, 0.1);
    // Two thirds of 450 GB/s: packets of 64 B, each with a header and an acknowledgement.
    const auto [dispatch, combine] = slope(64);
    const double copies = 512 * 5.295 * 7 / 8;  // tokens' distinct GPUs, but for their own
    EXPECT_NEAR(copies * (7168 + 224 + 100) / 300e3 / dispatch, 1, 0.1);
    EXPECT_NEAR(copies * 14340 / 300e3 / combine, 1, 0.1);
}

TEST(DeepEp, bytes_on_links_do_not_depend_on_the_sms) {
    Trial run;
    run.tokens = 256;
    EXPECT_EQ(run.on(4).payload, run.on(24).payload);
}

TEST(DeepEp, a_token_costs_time_to_look_at_though_it_goes_elsewhere) {
    // One expert each: a lane sends an eighth of what it looks at.
    Trial run;
    run.model = small_model(128, 1, 5120);
    const LayerResult some = run.on(8);
    run.tokens = 1024;
    const LayerResult more = run.on(8);
    const Exchange rates = load_machine("dgx-h200").gpu.exchange;
    const double row = microseconds(rates.push_row) + (5280 + 16) * 8 / rates.push * 1e6;
    const double lane = 512 / 4 * (microseconds(rates.push_token) + row / 8);
    EXPECT_NEAR(microseconds(more.dispatch - some.dispatch) / lane, 1, 0.25);
}

TEST(DeepEp, few_experts_use_few_sms_of_the_low_latency_kernels) {
    // As many SMs as experts cast tokens.
    Trial run;
    run.model = small_model(8, 2, 4096);
    const double few = microseconds(run("deepep-ll").dispatch);
    run.model = small_model(128, 2, 4096);
    const double many = microseconds(run("deepep-ll").dispatch);
    const Exchange rates = load_machine("dgx-h200").gpu.exchange;
    const double token = microseconds(rates.cast_token) + 8192 / rates.cast * 1e6;
    EXPECT_GT(few, 512 / 8 * token);
    EXPECT_LT(many, few / 3);
}

/// Every `step`-th row of a file, as a file.
std::string part_of(const std::string& name, std::size_t step) {
    std::ifstream all(std::string(MOEHUB_SOURCE_DIR "/validation/kernels/") + name);
    const std::string path = (std::filesystem::path(::testing::TempDir()) / ("part_" + name));
    std::ofstream part(path);
    std::string line;
    for (std::size_t i = 0; std::getline(all, line); ++i)
        if (i % step == 0) part << line << '\n';
    return path;
}

/// Median error of rows above 10 us, by "machine phase".
std::map<std::string, double> medians(const Validation& validation) {
    std::map<std::string, std::vector<double>> errors;
    for (const ValidationRow& row : validation.rows) {
        if (row.measured <= 10) continue;
        const std::string name = row.name.substr(0, row.name.find(','));
        errors[name.substr(name.find(' ') + 1)].push_back(std::abs(row.error));
    }
    std::map<std::string, double> made;
    for (auto& [name, all] : errors) {
        std::sort(all.begin(), all.end());
        made[name] = all[all.size() / 2];
    }
    return made;
}

void expect_medians(const std::string& file, std::size_t step,
                    const std::map<std::string, double>& today) {
    const std::map<std::string, double> found = medians(validate(part_of(file, step)));
    for (const auto& [name, median] : today) {
        ASSERT_TRUE(found.contains(name)) << name;
        EXPECT_LT(found.at(name), median + 0.01) << name;
    }
    EXPECT_EQ(found.size(), today.size());
}

TEST(DeepEp, low_latency_kernels_take_as_long_as_measured) {
    expect_medians("deepep_ll.csv", 5,
                   {{"dgx-h100 dispatch", 0.038},
                    {"dgx-h100 combine", 0.043},
                    {"dgx-h200 dispatch", 0.042},
                    {"dgx-h200 combine", 0.040},
                    {"dgx-b200 dispatch", 0.037},
                    {"dgx-b200 combine", 0.077},
                    {"gb200-nvl72 dispatch", 0.038},
                    {"gb200-nvl72 combine", 0.070}});
}

TEST(DeepEp, normal_kernels_take_as_long_as_measured_at_every_number_of_sms) {
    expect_medians("deepep_normal.csv", 31,
                   {{"dgx-h100 dispatch", 0.034},
                    {"dgx-h100 combine", 0.033},
                    {"dgx-h200 dispatch", 0.032},
                    {"dgx-h200 combine", 0.039},
                    {"dgx-b200 dispatch", 0.047},
                    {"dgx-b200 combine", 0.043},
                    {"gb200-nvl72 dispatch", 0.043},
                    {"gb200-nvl72 combine", 0.052}});
}

}  // namespace
}  // namespace moehub::testing::deepep_test
