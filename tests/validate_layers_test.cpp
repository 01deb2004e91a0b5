// Are files of layer operators, of eager phases and of whole layers read, refused and predicted as
// documented?
#include <moehub/error.hpp>
#include <moehub/validate.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace moehub {
namespace {

const std::string kLayers = "op,dtype,batch,heads,kv_heads,seq,head_dim,groups,rows,k,n,us\n";
const std::string kEager =
    "model,tokens,rows,route_us,plan_us,permute_us,gemm1_us,activation_us,gemm2_us,combine_us\n";
const std::string kData = std::string(MOEHUB_SOURCE_DIR) + "/validation/h200/";

/// A file that lives as long as the test.
class Saved {
  public:
    explicit Saved(const std::string& text)
        : path_(std::filesystem::temp_directory_path() /
                ("moehub-validate-layers-" + std::to_string(getpid()) + ".csv")) {
        std::ofstream(path_, std::ios::binary) << text;
    }
    ~Saved() { std::filesystem::remove(path_); }
    Saved(const Saved&) = delete;
    Saved& operator=(const Saved&) = delete;
    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

Validation validated(const std::string& text) {
    const Saved saved(text);
    return validate(saved.path());
}

std::string error_of(const std::string& text) {
    const Saved saved(text);
    try {
        validate(saved.path());
    } catch (const InputError& error) {
        return std::string(error.what()).substr(saved.path().size());
    }
    return "no error";
}

TEST(ValidateLayers, ARowOfEachOperatorIsPredicted) {
    const auto result = validate(kData + "layers.csv");
    EXPECT_EQ(result.kind, "layers");
    EXPECT_TRUE(result.skipped.empty());
    EXPECT_EQ(result.rows.size(), 288u);
    EXPECT_EQ(result.summary.size(), 12u);
    for (const auto& one : result.summary) EXPECT_LE(one.median, 0.08) << one.name;
}

TEST(ValidateLayers, UnknownOperatorsAreSkipped) {
    const auto result = validated(kLayers + "rope,bf16,,,,,,,128,2048,,5\n");
    EXPECT_TRUE(result.rows.empty());
    ASSERT_EQ(result.skipped.size(), 1u);
    EXPECT_EQ(result.skipped[0].why, "no model of this operator, or not of this size");
}

TEST(ValidateLayers, ABadRowSaysItsLineAndColumn) {
    EXPECT_EQ(error_of(kLayers + "rms_norm,bf16,,,,,,,0,2048,,5\n"),
              ":2: rows: found \"0\", allowed: a whole number from 1 to 1000000000");
    EXPECT_EQ(error_of(kLayers + "rms_norm,bf16,,,,,,,,2048,,5\n"),
              ":2: seq and rows: found nothing in both, allowed: one of them");
    EXPECT_EQ(error_of(kLayers + "attention_fwd_cudnn,bf16,1,32,5,128,128,,,,,5\n"),
              ":2: kv_heads: found \"5\", allowed: a divisor of the row's heads, 32");
    EXPECT_EQ(error_of(kLayers + "rms_norm,bf16,,,,,,,8,2048,,long\n"),
              ":2: us: found \"long\", allowed: a finite number");
}

TEST(ValidateEager, ARowHoldsOneCaseForEachPhase) {
    const auto result = validate(kData + "eager_phases.csv");
    EXPECT_EQ(result.kind, "eager_phases");
    EXPECT_EQ(result.rows.size(), 8u * 7);
    EXPECT_EQ(result.rows[6].name, "combine");
    EXPECT_EQ(result.rows[6].line, 2);
    EXPECT_EQ(result.rows[6].shape.back(),
              (std::pair<std::string, std::string>("phase", "combine")));
    for (const auto& row : result.rows)
        EXPECT_LE(std::abs(row.error), 0.20) << row.name << " in line " << row.line;
}

TEST(ValidateEager, UnknownModelsAndSharesAreSkipped) {
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

TEST(ValidateEager, ABadRowSaysItsLineAndColumn) {
    EXPECT_EQ(error_of(kEager + "mixtral-8x7b,128,256,1,1,1,1,1,1,0\n"),
              ":2: combine_us: found \"0\", allowed: a number above 0");
    EXPECT_EQ(error_of(kEager + "mixtral-8x7b,0,256,1,1,1,1,1,1,1\n"),
              ":2: tokens: found \"0\", allowed: a whole number from 1 to 1000000000");
}

const std::string kWhole = "model,tokens,max_rows,eager_us,graph_us,eager_forward_backward_us\n";

TEST(ValidateWholeLayers, AreWholeLayersOfPyTorchPredicted) {
    const auto result = validate(kData + "whole_layers.csv");
    EXPECT_EQ(result.kind, "whole_layers");
    EXPECT_TRUE(result.skipped.empty());
    EXPECT_EQ(result.rows.size(), 27u * 3);
    ASSERT_EQ(result.summary.size(), 3u);
    for (const auto& one : result.summary) {
        EXPECT_LE(one.median, 0.06) << one.name;
        EXPECT_LE(one.p90, 0.15) << one.name;
    }
}

TEST(ValidateWholeLayers, AreModelsPredictedThatNoConstantWasFoundOn) {
    const auto result = validate(kData + "whole_layers_extra.csv");
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

TEST(ValidateWholeLayers, ARowHoldsOneCaseForEachWayOfRunningIt) {
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

TEST(ValidateWholeLayers, ABadRowSaysItsLineAndColumn) {
    EXPECT_EQ(error_of(kWhole + "mixtral-8x7b,64,40,900,0,2000\n"),
              ":2: graph_us: found \"0\", allowed: a number above 0");
    EXPECT_EQ(error_of(kWhole + "mixtral-8x7b,0,40,900,700,2000\n"),
              ":2: tokens: found \"0\", allowed: a whole number from 1 to 10000000");
}

}  // namespace
}  // namespace moehub
