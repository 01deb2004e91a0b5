// Are files of layer operators, of eager phases and of whole layers read, refused and predicted as
// documented?
#include "validated.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace moehub::validate_layers_test {
namespace {

const std::string kLayers = "op,dtype,batch,heads,kv_heads,seq,head_dim,groups,rows,k,n,us\n";
const std::string kEager =
    "model,tokens,rows,route_us,plan_us,permute_us,gemm1_us,activation_us,gemm2_us,combine_us\n";

TEST(ValidateLayers, a_row_of_each_operator_is_predicted) {
    const auto result = predicted_whole("h200/layers.csv", 288, 12);
    EXPECT_EQ(result.kind, "layers");
    for (const auto& one : result.summary) EXPECT_LE(one.median, 0.08) << one.name;
}

TEST(ValidateLayers, unknown_operators_are_skipped) {
    EXPECT_EQ(why_skipped(kLayers + "rope,bf16,,,,,,,128,2048,,5\n"),
              "no model of this operator, or not of this size");
}

TEST(ValidateLayers, a_bad_row_says_its_line_and_column) {
    expect_errors([](auto& row) { return table_error(kLayers + row + "\n"); }, R"(
rms_norm,bf16,,,,,,,0,2048,,5
    :2: rows: found "0", allowed: a whole number from 1 to 1000000000
rms_norm,bf16,,,,,,,,2048,,5
    :2: seq and rows: found nothing in both, allowed: one of them
attention_fwd_cudnn,bf16,1,32,5,128,128,,,,,5
    :2: kv_heads: found "5", allowed: a divisor of the row's heads, 32
rms_norm,bf16,,,,,,,8,2048,,long
    :2: us: found "long", allowed: a finite number
)");
}

TEST(ValidateEager, a_row_holds_one_case_for_each_phase) {
    const auto result = predicted_whole("h200/eager_phases.csv", 8 * 7, 7);
    EXPECT_EQ(result.kind, "eager_phases");
    EXPECT_EQ(result.rows[6].name, "combine");
    EXPECT_EQ(result.rows[6].line, 2);
    EXPECT_EQ(result.rows[6].shape.back(),
              (std::pair<std::string, std::string>("phase", "combine")));
    for (const auto& row : result.rows)
        EXPECT_LE(std::abs(row.error), 0.20) << row.name << " in line " << row.line;
}

TEST(ValidateEager, unknown_models_and_shares_are_skipped) {
    const std::string times = ",128,256,1,1,1,1,1,1,1\n";
    const auto unknown = validated(kEager + "nonesuch" + times);
    ASSERT_EQ(unknown.skipped.size(), 1u);
    EXPECT_EQ(unknown.skipped[0].name, "nonesuch");
    EXPECT_EQ(unknown.skipped[0].rows, 7u);
    const auto uneven = validated(kEager + "mixtral-8x7b-ep3" + times);
    ASSERT_EQ(uneven.skipped.size(), 1u);
    EXPECT_EQ(uneven.skipped[0].why, "8 experts cannot be shared by these ranks");
    EXPECT_EQ(validated(kEager + "mixtral-8x7b-ep0" + times).rows.size(), 0u);
    EXPECT_EQ(validated(kEager + "llama-7b" + times).rows.size(), 0u);  // has no experts
    EXPECT_EQ(validated(kEager + "mixtral-8x7b-ep2" + times).rows.size(), 7u);
}

TEST(ValidateEager, a_bad_row_says_its_line_and_column) {
    EXPECT_EQ(table_error(kEager + "mixtral-8x7b,128,256,1,1,1,1,1,1,0\n"),
              ":2: combine_us: found \"0\", allowed: a number above 0");
    EXPECT_EQ(table_error(kEager + "mixtral-8x7b,0,256,1,1,1,1,1,1,1\n"),
              ":2: tokens: found \"0\", allowed: a whole number from 1 to 1000000000");
}

const std::string kWhole = "model,tokens,max_rows,eager_us,graph_us,eager_forward_backward_us\n";

TEST(ValidateWholeLayers, whole_layers_of_pytorch_are_predicted) {
    const auto result = predicted_whole("h200/whole_layers.csv", 27 * 3, 3);
    EXPECT_EQ(result.kind, "whole_layers");
    for (const auto& one : result.summary) {
        EXPECT_LE(one.median, 0.06) << one.name;
        EXPECT_LE(one.p90, 0.15) << one.name;
    }
}

TEST(ValidateWholeLayers, models_that_no_constant_was_found_on_are_predicted) {
    const auto result = validate(MOEHUB_SOURCE_DIR "/validation/h200/whole_layers_extra.csv");
    EXPECT_TRUE(result.skipped.empty());
    std::vector<double> errors;
    for (const auto& row : result.rows) {
        const std::string& model = row.shape.front().second;
        if (model == "mixtral-8x7b" || model == "olmoe-1b-7b" || model == "deepseek-v3-ep8")
            continue;
        errors.push_back(std::abs(row.error));
    }
    std::sort(errors.begin(), errors.end());
    ASSERT_EQ(errors.size(), 3u * 7 * 3);
    EXPECT_LE(errors[errors.size() / 2], 0.08);
    EXPECT_LE(errors[errors.size() * 9 / 10], 0.20);
}

TEST(ValidateWholeLayers, a_row_holds_one_case_for_each_way_of_running_it) {
    const auto result = validated(kWhole + "mixtral-8x7b-ep2,64,40,900,700,2000\n");
    ASSERT_EQ(result.rows.size(), 3u);
    EXPECT_EQ(result.rows[1].name, "graph");
    EXPECT_EQ(result.rows[1].measured, 700);
    EXPECT_LT(result.rows[1].predicted, result.rows[0].predicted);
    EXPECT_GT(result.rows[2].predicted, 2 * result.rows[1].predicted);
    const auto unknown = validated(kWhole + "nonesuch,64,40,900,700,2000\n");
    ASSERT_EQ(unknown.skipped.size(), 1u);
    EXPECT_EQ(unknown.skipped[0].name, "nonesuch");
    EXPECT_EQ(unknown.skipped[0].rows, 3u);
    EXPECT_EQ(validated(kWhole + "llama-7b,64,40,900,700,2000\n").rows.size(), 0u);
}

TEST(ValidateWholeLayers, a_bad_row_says_its_line_and_column) {
    EXPECT_EQ(table_error(kWhole + "mixtral-8x7b,64,40,900,0,2000\n"),
              ":2: graph_us: found \"0\", allowed: a number above 0");
    EXPECT_EQ(table_error(kWhole + "mixtral-8x7b,0,40,900,700,2000\n"),
              ":2: tokens: found \"0\", allowed: a whole number from 1 to 10000000");
}

}  // namespace
}  // namespace moehub::validate_layers_test
