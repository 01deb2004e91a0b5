// Are files of training's operators and of long attention read, refused and predicted?
#include <moehub/error.hpp>
#include <moehub/predict.hpp>
#include <moehub/presets.hpp>
#include <moehub/validate.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace moehub {
namespace {

const std::string kTraining = "op,elements,us,rows\n";
const std::string kAttention = "op,batch,heads,kv_heads,seq,head_dim,fwd_us,fwd_bwd_us\n";
const std::string kData = std::string(MOEHUB_SOURCE_DIR) + "/validation/h200/";

Validation validated(const std::string& text, std::string* error = nullptr) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("moehub-validate-training-" + std::to_string(getpid()) + ".csv");
    std::ofstream(path, std::ios::binary) << text;
    Validation result;
    try {
        result = validate(path.string());
    } catch (const InputError& failure) {
        if (error != nullptr) *error = std::string(failure.what()).substr(path.string().size());
    }
    std::filesystem::remove(path);
    return result;
}

std::string error_of(const std::string& text) {
    std::string error = "no error";
    validated(text, &error);
    return error;
}

double us(const TrainingOperator& op) {
    return to_us(predict_training(load_gpu("h200-sxm"), op).value());
}

TEST(ValidateTraining, EveryRowIsWithinEightPercent) {
    const auto result = validate(kData + "training_ops.csv");
    EXPECT_EQ(result.kind, "training_ops");
    EXPECT_TRUE(result.skipped.empty());
    EXPECT_EQ(result.rows.size(), 12u);
    EXPECT_EQ(result.summary.size(), 3u);
    for (const auto& one : result.summary) {
        EXPECT_LE(one.median, 0.04) << one.name;
        EXPECT_LE(one.max, 0.08) << one.name;
    }
}

TEST(ValidateTraining, LongAttentionIsWithinTenPercent) {
    const auto result = validate(kData + "long_attention.csv");
    EXPECT_EQ(result.kind, "long_attention");
    EXPECT_TRUE(result.skipped.empty());
    EXPECT_EQ(result.rows.size(), 6u);
    EXPECT_EQ(result.summary.size(), 2u);
    for (const auto& one : result.summary) EXPECT_LE(one.max, 0.10) << one.name;
}

TEST(ValidateTraining, LargeOnesMoveTheirBytes) {
    const Gpu gpu = load_gpu("h200-sxm");
    const double elements = 4e9;
    EXPECT_NEAR(us({"adamw_fp32", 4'000'000'000, 0}) * 1e-6 * gpu.kernels.hbm_mixed *
                    gpu.hbm_bandwidth / (28 * elements),
                1, 0.01);
    EXPECT_NEAR(us({"add_bf16_to_fp32", 4'000'000'000, 0}) * 1e-6 * gpu.sms *
                    gpu.kernels.cast_load / (10 * elements),
                1, 0.01);
    // Wide rows come from memory in every pass: 12 and 4 bytes forward, 12 and 8 backward.
    EXPECT_NEAR(us({"cross_entropy_fp32_fwd_bwd", 4'000'000'000, 20'000}) * 1e-6 *
                    gpu.kernels.hbm_efficiency * gpu.hbm_bandwidth / (36 * elements),
                1, 0.01);
    // Narrow ones lie in L2 from the first pass on.
    EXPECT_LT(us({"cross_entropy_fp32_fwd_bwd", 4'000'000'000, 500'000}),
              0.85 * us({"cross_entropy_fp32_fwd_bwd", 4'000'000'000, 20'000}));
}

TEST(ValidateTraining, TheClockFallsInLongAttention) {
    Gpu gpu = load_gpu("h200-sxm");
    Gpu steady = gpu;
    steady.kernels.attention_clock = 1;
    LayerOperator op;
    op.op = "attention_fwd_cudnn";
    op.batch = 1;
    op.heads = op.kv_heads = 16;
    op.seq = 4096;
    op.head_dim = 128;
    EXPECT_EQ(predict_layer(gpu, op), predict_layer(steady, op));
    op.seq = 65536;
    const auto lowered = static_cast<double>(*predict_layer(gpu, op));
    EXPECT_NEAR(lowered / static_cast<double>(*predict_layer(steady, op)),
                1 / gpu.kernels.attention_clock, 0.001);
}

TEST(ValidateTraining, UnknownOperatorsAreSkipped) {
    EXPECT_EQ(validated(kTraining + "sgd,1000,5,\n").skipped.size(), 1u);
    EXPECT_EQ(validated(kTraining + "cross_entropy_fp32_fwd_bwd,1000,5,\n").skipped.size(), 1u);
    EXPECT_EQ(validated(kAttention + "attention_other,1,8,8,8192,128,5,9\n").skipped.size(), 2u);
    EXPECT_EQ(validated(kAttention + "rope,1,8,8,8192,128,5,9\n").skipped.size(), 1u)
        << "both passes under one name";
}

TEST(ValidateTraining, ABadRowSaysItsLineAndColumn) {
    EXPECT_EQ(error_of(kTraining + "adamw_fp32,0,5,\n"),
              ":2: elements: found \"0\", allowed: a whole number from 1 to 1000000000000");
    EXPECT_EQ(error_of(kTraining + "cross_entropy_fp32_fwd_bwd,1000,5,7\n"),
              ":2: rows: found \"7\", allowed: a divisor of the row's elements, 1000");
    EXPECT_EQ(error_of(kAttention + "attention_cudnn,1,8,3,8192,128,5,9\n"),
              ":2: kv_heads: found \"3\", allowed: a divisor of the row's heads, 8");
    EXPECT_EQ(error_of(kAttention + "attention_cudnn,1,8,8,8192,128,5,long\n"),
              ":2: fwd_bwd_us: found \"long\", allowed: a finite number");
}

}  // namespace
}  // namespace moehub
