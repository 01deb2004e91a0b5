// Is a serving step the sum of its kernels, do more requests never make a worker slower per token,
// does what cannot run get its one clear line, and how far off are published measurements?
#include "error_of.hpp"
#include "golden.hpp"
#include "study/serving/operators.hpp"

#include <moehub/predict.hpp>
#include <moehub/presets.hpp>
#include <moehub/serving.hpp>
#include <moehub/validate.hpp>

#include <gtest/gtest.h>

namespace moehub::serving_test {
namespace {

ServingCase case_of(const std::string& machine, const std::string& model, NumberFormat weights,
                    const ServingLayout& layout) {
    ServingCase what;
    what.machine = load_machine(machine);
    what.model = load_model(model);
    what.engine = load_engine("trtllm");
    what.layout = layout;
    what.formats = engine_formats(what.engine, what.model, what.machine.gpu, weights);
    return what;
}

const StepOperator& named(const std::vector<StepOperator>& operators, const std::string& name) {
    for (const StepOperator& one : operators)
        if (one.name == name) return one;
    throw std::runtime_error("no operator " + name);
}

TEST(Serving, one_card_is_the_sum_of_its_kernels) {
    ServingCase what = case_of("dgx-h200", "llama-3.1-70b", NumberFormat::fp8, {});
    what.engine.hopper = {};
    const ServingStep step = step_time(what, {.requests = 16, .context = 2000});
    const auto seconds = [&](const KernelCall& call) {
        return predict_kernel(what.machine.gpu, "trtllm", call).seconds;
    };
    using enum NumberFormat;
    const double layer =
        seconds(GemmCall{fp8, 16, 10240, 8192}) + seconds(DecodeCall{fp8, 16, 2000, 64, 8, 128}) +
        seconds(GemmCall{fp8, 16, 8192, 8192}) + seconds(GemmCall{fp8, 16, 2 * 28672, 8192}) +
        seconds(GemmCall{fp8, 16, 8192, 28672});
    const double small = named(step.operators, "norms and activations").total() +
                         named(step.operators, "sampling").total();
    EXPECT_NEAR(step.seconds, 80 * layer + seconds(GemmCall{bf16, 16, 128256, 8192}) + small,
                1e-12);
    for (const StepOperator& one : step.operators) {
        EXPECT_NE(one.kind, OperatorKind::all_reduce);
        EXPECT_NE(one.kind, OperatorKind::combine);
    }
}

TEST(Serving, attention_is_the_librarys_prediction) {
    ServingCase what = case_of("dgx-b200", "deepseek-v3", NumberFormat::nvfp4, {8, 1, 1, 8});
    what.engine.blackwell.start_hidden = 0;
    const ServingStep step = step_time(what, {.requests = 64, .context = 4000});
    const MlaDecodeCall call{NumberFormat::fp8, 64, 4000, 16};
    EXPECT_DOUBLE_EQ(named(step.operators, "attention").seconds,
                     predict_kernel(what.machine.gpu, "trtllm", call).seconds);
}

TEST(Serving, the_rest_and_the_moe_layer_are_the_step) {
    ServingCase what = case_of("dgx-b200", "deepseek-v3", NumberFormat::nvfp4, {1, 8, 1, 8});
    what.engine.shared_beside = false;
    const ServingClock clock(what);
    const StepLoad load{.requests = 256, .context = 1500};
    double parts = 0;
    for (const StepOperator& one : clock.rest_operators(load)) parts += one.total();
    for (const StepOperator& one : clock.moe_operators(load)) {
        EXPECT_TRUE(one.kind == OperatorKind::dispatch || one.kind == OperatorKind::experts ||
                    one.kind == OperatorKind::combine);
        parts += one.total();
    }
    EXPECT_NEAR(clock.step(load).seconds, parts, 1e-12);
}

TEST(Serving, windows_and_dense_layers_count_once) {
    const ServingCase oss = case_of("dgx-b200", "gpt-oss-120b", NumberFormat::nvfp4, {});
    const ServingStep step = step_time(oss, {.requests = 8, .context = 8000});
    EXPECT_EQ(named(step.operators, "attention").count, 18);
    EXPECT_EQ(named(step.operators, "attention (window)").count, 18);
    EXPECT_LT(named(step.operators, "attention (window)").seconds,
              named(step.operators, "attention").seconds);
    const ServingCase v3 = case_of("dgx-b200", "deepseek-v3", NumberFormat::fp8, {8, 1, 8, 1});
    const ServingStep whole = step_time(v3, {.requests = 8, .context = 1000});
    EXPECT_EQ(named(whole.operators, "FFN up").count, 3);
    EXPECT_EQ(named(whole.operators, "experts").count, 58);
}

TEST(Serving, more_requests_never_give_fewer_tokens) {
    const ServingClock clock(case_of("dgx-h200", "deepseek-v3", NumberFormat::fp8, {1, 8, 1, 8}));
    double before = 0;
    for (const std::int64_t requests : {8, 16, 32, 64, 128, 256, 512, 1024}) {
        const RequestTimes times = request_times(clock, {1024, 1024, requests});
        EXPECT_GE(times.tokens_per_second, before) << requests;
        before = times.tokens_per_second;
    }
}

TEST(Serving, requests_that_do_not_fit_wait) {
    const ServingCase what = case_of("dgx-h200", "llama-3.1-70b", NumberFormat::fp8, {});
    const ServingMemory memory = serving_memory(what);
    EXPECT_NEAR(memory.weights, 70.6e9 + 2 * 1.05e9, 1e9);  // fp8, and embeddings of bf16
    EXPECT_DOUBLE_EQ(memory.cache_per_token, 80 * 2 * 8 * 128);
    const std::int64_t most = memory.most_requests(9216);
    EXPECT_EQ(request_times(ServingClock(what), {1024, 8192, 10 * most}).running, most);
}

TEST(Serving, prompts_take_time_from_decoding) {
    const ServingClock clock(case_of("dgx-h200", "llama-3.1-70b", NumberFormat::fp8, {8, 1, 8, 1}));
    RequestLoad load{1024, 1024, 64};
    const double decoding = request_times(clock, load).tpot;
    load.prefills = true;
    const double mixed = request_times(clock, load).tpot;
    EXPECT_GT(mixed, decoding);
    load.input = 4096;
    EXPECT_GT(request_times(clock, load).tpot, mixed);
}

TEST(Serving, random_tokens_reach_fewer_experts_than_even_ones) {
    // One token reaches its top_k; many reach all; in between 1 - (1 - 1/32)^32 = 63.8 %.
    EXPECT_NEAR(random_rows({1, 8, 256, 1}).experts, 8, 1e-9);
    EXPECT_NEAR(random_rows({32, 8, 256, 1}).experts, 256 * 0.6379, 0.1);
    EXPECT_NEAR(random_rows({100000, 8, 256, 1}).experts, 256, 1e-6);
    EXPECT_NEAR(random_rows({100000, 8, 256, 1}).rows, 800000, 1e-3);
    EXPECT_LT(random_rows({32, 8, 256, 1, 0.5}).experts, random_rows({32, 8, 256, 1}).experts);
    EXPECT_GT(random_rows({32, 8, 256, 8}).experts, random_rows({32, 8, 256, 1}).experts / 8);
}

TEST(Serving, what_cannot_run_is_refused_in_one_line) {
    const auto error = [](const ServingCase& what, const StepLoad& load) {
        return error_of([&] { step_time(what, load); });
    };
    const StepLoad load{.requests = 8, .context = 1000};
    using enum NumberFormat;
    EXPECT_EQ(error(case_of("gb200-nvl72", "deepseek-v3", fp8, {72, 1, 72, 1}), load),
              "attention_tp: found 72, allowed: a divisor of the heads, 128");
    EXPECT_EQ(error(case_of("dgx-h200", "deepseek-v3", fp8, {8, 1, 2, 2}), load),
              "layout: found moe_tp 2 × moe_ep 2, allowed: as many GPUs as attention has, 8 × 1");
    EXPECT_EQ(error(case_of("dgx-h200", "deepseek-v3", fp8, {16, 1, 1, 16}), load),
              "layout: found 16 × 1 GPUs, allowed: at most dgx-h200's 8");
    EXPECT_EQ(error(case_of("dgx-h200", "gpt-oss-120b", bf16, {1, 7, 7, 1}), load),
              "moe_tp: found 7, allowed: a divisor of the experts' width, 2880");
    const ServingCase fits = case_of("dgx-h200", "deepseek-v3", fp8, {8, 1, 1, 8});
    EXPECT_EQ(error(fits, {.requests = 8}), "context: found 0, allowed: 1 to 100000000 tokens");
    EXPECT_EQ(error(fits, {}), "requests and prompts: found 0, allowed: 1 or more of either");
    ServingCase lacks = fits;
    lacks.formats.experts = nvfp4;
    EXPECT_NE(error(lacks, load).find("nvfp4"), std::string::npos);
    EXPECT_EQ(
        error_of([] { load_engine("trtlm"); }),
        "unknown engine \"trtlm\"; did you mean \"trtllm\"? (sglang, sglang-0.4, trtllm, vllm)");
}

/// Each group of published rows is met as when the constants were fitted.
TEST(Serving, errors_of_published_rows_are_no_worse_than_the_golden_ones) {
    const std::string folder = MOEHUB_SOURCE_DIR "/validation/";
    golden::expect_errors(validate(folder + "published_serving_requests.csv").summary,
                          folder + "serving_errors.csv", 0.01, 0.02);
}

}  // namespace
}  // namespace moehub::serving_test
