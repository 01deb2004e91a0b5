#include "asking.hpp"
#include "study/validate_kinds.hpp"
#include "validated.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::validate_test {
namespace {

const std::string kOperators = "op,groups,rows,max_rows,k,n,skew,us\n";
const std::string kCollectives = "machine,gpus,op,algorithm,bytes,us,busbw_GBps,source\n";

TEST(Validate, an_error_is_predicted_over_measured_minus_one) {
    const auto result = validated(kOperators + "gemm,1,1024,1024,4096,4096,,100\n");
    ASSERT_EQ(result.rows.size(), 1u);
    const auto& row = result.rows[0];
    EXPECT_EQ(result.kind, "operators");
    EXPECT_EQ(row.line, 2);
    EXPECT_EQ(row.measured, 100);
    EXPECT_GT(row.predicted, 0);
    EXPECT_DOUBLE_EQ(row.error, row.predicted / row.measured - 1);
}

TEST(Validate, the_order_of_columns_does_not_matter) {
    const auto one = validated(kOperators + "gemm,1,512,512,4096,1024,,10\n");
    const auto other =
        validated("us,skew,n,k,max_rows,rows,groups,op\n10,,1024,4096,512,512,1,gemm\n");
    ASSERT_EQ(one.rows.size(), 1u);
    ASSERT_EQ(other.rows.size(), 1u);
    EXPECT_EQ(one.rows[0].shape, other.rows[0].shape);
    EXPECT_EQ(one.rows[0].predicted, other.rows[0].predicted);
}

TEST(Validate, the_summary_follows_from_the_rows) {
    std::string text = kOperators;
    for (const auto* us : {"20", "40", "60", "80"})
        text += std::string("gemm,1,1024,1024,4096,4096,,") + us + "\n";
    const auto result = validated(text);
    ASSERT_EQ(result.summary.size(), 1u);
    const auto& summary = result.summary[0];
    std::vector<double> errors;
    for (const auto& row : result.rows) errors.push_back(std::abs(row.error));
    std::sort(errors.begin(), errors.end());
    EXPECT_EQ(summary.name, "gemm");
    EXPECT_EQ(summary.rows, 4u);
    EXPECT_DOUBLE_EQ(summary.median, (errors[1] + errors[2]) / 2);
    EXPECT_DOUBLE_EQ(summary.mean, (errors[0] + errors[1] + errors[2] + errors[3]) / 4);
    EXPECT_NEAR(summary.p90, errors[2] + 0.7 * (errors[3] - errors[2]), 1e-12);
    EXPECT_EQ(summary.max, errors[3]);
}

TEST(Validate, an_unknown_operator_is_skipped_by_name) {
    const auto result = validated(
        kOperators + "fft,1,8,8,8,8,,1\ngemm,1,512,512,4096,1024,,10\nfft,1,9,9,8,8,,1\n");
    EXPECT_EQ(result.rows.size(), 1u);
    ASSERT_EQ(result.skipped.size(), 1u);
    EXPECT_EQ(result.skipped[0].name, "fft");
    EXPECT_EQ(result.skipped[0].rows, 2u);
    EXPECT_EQ(result.skipped[0].why, "no model of this operator, or not of this size");
}

TEST(Validate, a_time_is_compared_as_time_and_a_bandwidth_as_bandwidth) {
    const auto result = validated(kCollectives +
                                  "dgx-h100,8,all_reduce,ring,16777216,100,,x\n"
                                  "dgx-h100,8,all_reduce,ring,16777216,,300,x\n"
                                  "dgx-h100,8,all_reduce,ring,16777216,100,300,x\n");
    ASSERT_EQ(result.rows.size(), 3u);
    const auto& timed = result.rows[0];
    const auto& bus = result.rows[1];
    EXPECT_EQ(timed.name, "all_reduce ring");
    EXPECT_EQ(timed.unit, "us");
    EXPECT_EQ(bus.unit, "GB/s");
    EXPECT_EQ(bus.measured, 300);
    // nccl-tests: bus bandwidth = bytes / time * 2 (n - 1) / n
    EXPECT_NEAR(bus.predicted, 16777216 / (timed.predicted * 1e-6) * 2 * 7 / 8 / 1e9, 1e-6);
    EXPECT_EQ(result.rows[2].predicted, timed.predicted);
}

TEST(Validate, collectives_that_cannot_run_are_skipped_by_name) {
    const auto result = validated(kCollectives +
                                  "dgx-h1000,8,all_reduce,ring,1024,1,,x\n"
                                  "dgx-h100,8,all_reduce,tree,1024,1,,x\n"
                                  "dgx-h100,8,broadcast,ring,1024,1,,x\n"
                                  "dgx-h100,8,all_to_all,ring,1024,1,,x\n");
    EXPECT_TRUE(result.rows.empty());
    EXPECT_TRUE(result.summary.empty());
    ASSERT_EQ(result.skipped.size(), 4u);
    EXPECT_EQ(result.skipped[0].name, "dgx-h1000");
    EXPECT_EQ(result.skipped[1].name, "all_reduce tree");
    EXPECT_EQ(result.skipped[1].why,
              "unknown algorithm; known: direct, ring, nvls, auto, one-shot, nvls-tree, collnet");
    EXPECT_EQ(result.skipped[2].name, "broadcast ring");
    EXPECT_EQ(result.skipped[3].name, "all_to_all ring");
    for (const auto& one : result.skipped) EXPECT_FALSE(one.why.empty());
}

TEST(Validate, unknown_systems_and_phases_are_skipped_by_name) {
    const std::string header =
        "system,machine,gpus,tokens_per_gpu,hidden,experts,top_k,routing,"
        "dispatch_bytes_per_element,combine_bytes_per_element,phase,us\n";
    const auto result = validated(header +
                                  "deepep-ll,dgx-h800,2,4,256,8,2,perfect,1,2,dispatch,20\n"
                                  "pplx,dgx-h800,2,4,256,8,2,uniform,1,2,dispatch,20\n"
                                  "deepep-ll,dgx-h801,2,4,256,8,2,uniform,1,2,dispatch,20\n"
                                  "ideal,dgx-h800,2,4,256,8,2,uniform,2,2,combine,20\n"
                                  "deepep-ll,dgx-h800,2,4,256,8,2,uniform,1,2,both,20\n");
    EXPECT_EQ(result.rows.size(), 1u);
    ASSERT_EQ(result.skipped.size(), 4u);
    EXPECT_EQ(result.skipped[0].name, "pplx");
    EXPECT_EQ(result.skipped[1].name, "dgx-h801");
    EXPECT_EQ(result.skipped[2].name, "ideal");
    EXPECT_EQ(result.skipped[3].why, "unknown phase both; known: dispatch, combine");
}

/// DeepEP's own tests time low-latency kernels alone, and normal ones with the call.
TEST(Validate, deepeps_kernels_are_timed_as_its_own_tests_do) {
    const double call_us = to_seconds(load_machine("dgx-h800").gpu.exchange.call) * 1e6;
    ASSERT_GT(call_us, 0);
    for (const std::string name : {"deepep", "deepep-ll"}) {
        const bool normal = name == "deepep";
        const SystemSpec system = load_system(name);
        const auto kernels =
            validated(fmt::format("system,machine,gpus,tokens_per_gpu,hidden,experts,top_k,routing,"
                                  "dispatch_bytes_per_element,combine_bytes_per_element,phase,us\n"
                                  "{0},dgx-h800,8,64,1024,32,4,uniform,{1},{2},dispatch,20\n"
                                  "{0},dgx-h800,8,64,1024,32,4,uniform,{1},{2},combine,20\n",
                                  name, system.dispatch_element, system.combine_element));
        const auto timed = validated(
            normal ? fmt::format("machine,gpus,nodes,tokens_per_gpu,hidden,top_k,experts,sms,"
                                 "dispatch_us,combine_us\ndgx-h800,8,1,64,1024,4,32,{},20,20\n",
                                 system.communication_sms)
                   : "machine,gpus,nodes,tokens_per_gpu,hidden,top_k,experts,dispatch_us,"
                     "combine_us\ndgx-h800,8,1,64,1024,4,32,20,20\n");
        ASSERT_EQ(kernels.rows.size(), 2u) << name;
        ASSERT_EQ(timed.rows.size(), 2u) << name;
        for (std::size_t i = 0; i < 2; ++i)
            EXPECT_NEAR(timed.rows[i].predicted - kernels.rows[i].predicted, normal ? call_us : 0,
                        1e-9)
                << timed.rows[i].name;
    }
}

TEST(Validate, every_published_collective_parses) {
    const auto table = CsvTable::read(MOEHUB_SOURCE_DIR "/validation/published_collectives.csv");
    EXPECT_EQ(parse_cases(table, file_kind_of(table)).size(), table.size());
}

TEST(Validate, a_header_with_a_column_too_few_or_too_many_is_none) {
    EXPECT_TRUE(table_error("op,groups,rows,max_rows,k,n,skew\n")
                    .starts_with(":1: unknown header (nearest: operators, missing us)"));
    EXPECT_TRUE(table_error("op,groups,rows,max_rows,k,n,skew,us,more\n")
                    .starts_with(":1: unknown header (nearest: operators, unknown \"more\")"));
}

TEST(Validate, an_unknown_header_lists_the_known_ones) {
    const auto error = table_error("op,groups,rows,max_rows,k,n,skew,time\n");
    EXPECT_TRUE(error.starts_with(
        ":1: unknown header (nearest: operators, missing us; unknown \"time\"), allowed: "
        "the columns of operators, collectives, "))
        << error;
    EXPECT_NE(error.find(", moe_comm, "), std::string::npos);
    const auto strange = table_error("what,value\n");
    EXPECT_TRUE(strange.starts_with(":1: unknown header, allowed: the columns of operators"));
    EXPECT_LT(strange.size(), 400u) << strange;
}

TEST(Validate, a_bad_row_says_its_line_and_column) {
    expect_errors([](auto& rows) { return table_error(kOperators + rows + "\n"); }, R"(
gemm,1,8,8,8,8,,1
gemm,1,-8,8,8,8,,1
    :3: rows: found "-8", allowed: a whole number from 1 to 2000000000
gemm,1,8,9,8,8,,1
    :2: max_rows: found "9", allowed: at most the row's rows, 8
,1,8,8,8,8,,1
    :2: op: found nothing, allowed: any text
)");
    EXPECT_EQ(table_error(kCollectives + "dgx-h100,8,all_reduce,ring,0,1,,x\n"),
              ":2: bytes: found \"0\", allowed: a whole number from 1 to 1125899906842624");
}

TEST(Validate, a_row_without_a_value_is_counted_and_left_out) {
    const auto result = validated(kOperators +
                                  "gemm,1,512,512,4096,1024,,10\ngemm,1,512,512,4096,1024,,\n"
                                  "gemm,1,256,256,4096,1024,,\n");
    EXPECT_EQ(result.rows.size(), 1u);
    ASSERT_EQ(result.skipped.size(), 1u);
    EXPECT_EQ(result.skipped[0].rows, 2u);
    EXPECT_EQ(result.skipped[0].why, "the row has no measured value");
    const auto both = validated(kCollectives + "dgx-h100,8,all_reduce,ring,8,,,x\n");
    ASSERT_EQ(both.skipped.size(), 1u);
    EXPECT_EQ(both.skipped[0].name, "all_reduce ring");
    // A row with several measurements counts by those that are there.
    const auto phases = validated(
        "model,tokens,rows,route_us,plan_us,permute_us,gemm1_us,activation_us,gemm2_us,combine_us\n"
        "mixtral-8x7b,1024,2048,100,100,,300,20,200,60\n");
    EXPECT_EQ(phases.rows.size(), 6u);
    ASSERT_EQ(phases.skipped.size(), 1u);
    EXPECT_EQ(phases.skipped[0].name, "permute");
}

TEST(Validate, settings_change_what_rows_are_of) {
    const auto predicted = [](const std::string& text, const Overrides& settings) {
        ValidateOptions options;
        options.settings = settings;
        return validated(text, options).rows.at(0).predicted;
    };
    const std::string gemm = kOperators + "gemm,1,8192,8192,8192,8192,,10\n";
    EXPECT_GT(predicted(gemm, {"gpu.bf16_flops=500 TFLOP/s"}), 1.5 * predicted(gemm, {}));
    const std::string ring = kCollectives + "dgx-h100,8,all_reduce,ring,16777216,100,,x\n";
    EXPECT_GT(predicted(ring, {"link.bandwidth=225 GB/s"}), 1.5 * predicted(ring, {}));
    EXPECT_THROW(predicted(gemm, {"link.latency=1 us"}), InputError);  // a card has no links
    EXPECT_THROW(predicted(ring, {"link.latenzy=1 us"}), InputError);
}

TEST(Validate, the_json_is_as_documented) {
    const MeasuredFile saved(kOperators + "gemm,1,512,512,4096,1024,,10\nfft,1,8,8,8,8,0.5,1\n");
    const auto json =
        nlohmann::json::parse(document_of("validate", {{"FILE", {saved.path()}}}).dump(-1));
    ASSERT_EQ(json["summary"].size(), 1u);
    for (const auto* key : {"name", "rows", "median", "mean", "p90", "max"})
        EXPECT_TRUE(json["summary"][0].contains(key)) << key;
    EXPECT_EQ(json["skipped"][0],
              (nlohmann::json{{"name", "fft"},
                              {"rows", 1},
                              {"reason", "no model of this operator, or not of this size"}}));
    const auto& row = json["rows"][0];
    EXPECT_EQ(row["columns"]["op"], "gemm");
    EXPECT_EQ(row["columns"]["k"], 4096);
    EXPECT_TRUE(row["columns"]["skew"].is_null());
    EXPECT_EQ(row["measured"], 10);
    EXPECT_TRUE(row["predicted"].is_number());
    EXPECT_TRUE(row["error"].is_number());
}

}  // namespace
}  // namespace moehub::validate_test
