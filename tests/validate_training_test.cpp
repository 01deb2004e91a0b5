// Are files of training's operators and of long attention read, refused and predicted?
#include "validated.hpp"

#include <moehub/predict.hpp>
#include <moehub/presets.hpp>

#include <gtest/gtest.h>

namespace moehub::validate_training_test {
namespace {

const std::string kTraining = "op,elements,us,rows\n";
const std::string kAttention = "op,batch,heads,kv_heads,seq,head_dim,fwd_us,fwd_bwd_us\n";
double us(const TrainingOperator& op) {
    return to_us(predict_training(load_gpu("h200-sxm"), op).value());
}

TEST(ValidateTraining, every_row_is_within_eight_percent) {
    const auto result = predicted_whole("h200/training_ops.csv", 12, 3);
    EXPECT_EQ(result.kind, "training_ops");
    for (const auto& one : result.summary) {
        EXPECT_LE(one.median, 0.04) << one.name;
        EXPECT_LE(one.max, 0.08) << one.name;
    }
}

TEST(ValidateTraining, long_attention_is_within_ten_percent) {
    const auto result = predicted_whole("h200/long_attention.csv", 6, 2);
    EXPECT_EQ(result.kind, "long_attention");
    for (const auto& one : result.summary) EXPECT_LE(one.max, 0.10) << one.name;
}

TEST(ValidateTraining, large_ones_move_their_bytes) {
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

TEST(ValidateTraining, the_clock_falls_in_long_attention) {
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

TEST(ValidateTraining, unknown_operators_are_skipped) {
    EXPECT_EQ(validated(kTraining + "sgd,1000,5,\n").skipped.size(), 1u);
    EXPECT_EQ(validated(kTraining + "cross_entropy_fp32_fwd_bwd,1000,5,\n").skipped.size(), 1u);
    EXPECT_EQ(validated(kAttention + "attention_other,1,8,8,8192,128,5,9\n").skipped.size(), 2u);
    EXPECT_EQ(validated(kAttention + "rope,1,8,8,8192,128,5,9\n").skipped.size(), 1u)
        << "both passes under one name";
}

TEST(ValidateTraining, a_bad_row_says_its_line_and_column) {
    expect_errors([](auto& row) { return table_error(kTraining + row + "\n"); }, R"(
adamw_fp32,0,5,
    :2: elements: found "0", allowed: a whole number from 1 to 1000000000000
cross_entropy_fp32_fwd_bwd,1000,5,7
    :2: rows: found "7", allowed: a divisor of the row's elements, 1000
)");
    expect_errors([](auto& row) { return table_error(kAttention + row + "\n"); }, R"(
attention_cudnn,1,8,3,8192,128,5,9
    :2: kv_heads: found "3", allowed: a divisor of the row's heads, 8
attention_cudnn,1,8,8,8192,128,5,long
    :2: fwd_bwd_us: found "long", allowed: a finite number
)");
}

}  // namespace
}  // namespace moehub::validate_training_test
