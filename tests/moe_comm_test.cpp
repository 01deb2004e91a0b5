// Do the systems that move rows in kernels of their own take as long as published, and for the
// reasons they should?
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/memory_ops.hpp"
#include "small_layer.hpp"

#include <moehub/validate.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace moehub::testing::moe_comm_test {
namespace {

Model deepseek_v3_shape() {
    Model model = small_model(256, 8, 7168);
    model.expert_ffn = 2048;
    return model;
}

Model deepseek_v4_flash_shape() {
    Model model = small_model(256, 6, 4096);
    model.expert_ffn = 2048;
    return model;
}

struct Trial {
    const char* machine = "dgx-h800";
    int gpus = 8;
    std::int64_t tokens = 128;  ///< tokens of one GPU
    Model model = deepseek_v3_shape();
    std::string routing = "uniform";
    LayerOptions options = only_rows();

    static LayerOptions only_rows() {
        LayerOptions options;
        options.compute = false;
        return options;
    }
    LayerResult operator()(const char* system, const Overrides& overrides = {}) const {
        const Machine sized = with_gpus(load_machine(machine), gpus);
        const Routing made = make_routing(parse_routing(routing), model, tokens * gpus);
        const Placement placement = contiguous_placement(model.experts, gpus);
        return simulate_layer({sized, model, made, placement}, load_system(system, overrides),
                              options);
    }
};

/// Distinct GPUs of a token when all sets of experts are alike:
/// R · (1 − C(E − E/R, k) / C(E, k)).
double distinct_gpus(const Model& model, int gpus) {
    double none = 1;
    const int elsewhere = model.experts - model.experts / gpus;
    for (int i = 0; i < model.top_k; ++i)
        none *= static_cast<double>(elsewhere - i) / (model.experts - i);
    return gpus * (1 - none);
}

double microseconds(Ps time) {
    return to_seconds(time) * 1e6;
}

#ifndef MOEHUB_SANITIZED  // long, and in code that shorter tests run
TEST(MoeComm, published_kernel_times_are_met_on_average) {
    const auto result = validate(MOEHUB_SOURCE_DIR "/validation/published_moe_comm.csv");
    EXPECT_EQ(result.rows.size(), 28u);
    ASSERT_EQ(result.summary.size(), 2u);
    EXPECT_EQ(result.summary[0].name, "one-sided");
    EXPECT_LT(result.summary[0].mean, 0.08);
    EXPECT_EQ(result.summary[1].name, "deepep-ll");
    EXPECT_LT(result.summary[1].mean, 0.12);
}
#endif

TEST(MoeComm, low_latency_kernels_keep_to_published_times_at_a_size_that_was_not_fitted) {
    Trial run;
    run.machine = "h800-cluster";
    run.gpus = 16;
    const LayerResult result = run("deepep-ll");
    EXPECT_NEAR(microseconds(result.dispatch) / 118, 1, 0.14);  // DeepEP README
    EXPECT_NEAR(microseconds(result.combine) / 195, 1, 0.14);
}

TEST(MoeComm, normal_kernels_reach_the_published_bandwidth) {
    Trial run;
    run.tokens = 4096;
    const LayerResult result = run("deepep");
    // As test_intranode.py counts: all copies received, the own ones included; FP8 with its scales.
    const double copies = 4096 * distinct_gpus(run.model, 8);
    EXPECT_NEAR(copies * 7168 * (1 + 4.0 / 128) / to_seconds(result.dispatch) / 153e9, 1, 0.08);
    EXPECT_NEAR(copies * 7168 * 2 / to_seconds(result.combine) / 158e9, 1, 0.08);
}

TEST(MoeComm, a_token_goes_once_to_every_gpu_that_needs_it) {
    Trial run;
    run.tokens = 1024;
    const double away = 8 * 1024 * distinct_gpus(run.model, 8) * 7 / 8;
    const double counts = 8 * 7 * 4 * (1 + 32);
    const double deepep = away * (7168 + 224 + 4 + 12 * 8 + 14336 + 4) + counts;
    EXPECT_NEAR(static_cast<double>(run("deepep").payload) / deepep, 1, 0.01);
    const double flags = 2 * 8 * 7 * 4;
    const double one_sided = away * (2 * 14336 + 8 * 8) + flags;
    EXPECT_NEAR(static_cast<double>(run("one-sided").payload) / one_sided, 1, 0.01);
    // The low-latency kernels send a copy to every expert.
    const double rows = 8 * 1024 * 8 * 7.0 / 8;
    const double low_latency = rows * (7168 + 224 + 16 + 14336) + 2 * 8 * 7 * 32 * 4;
    EXPECT_NEAR(static_cast<double>(run("deepep-ll").payload) / low_latency, 1, 0.01);
}

TEST(MoeComm, fewer_sms_are_slower) {
    Trial run;
    run.tokens = 512;
    const Ps all = run("deepep").dispatch;
    const Ps half = run("deepep", {"communication_sms=8"}).dispatch;
    const Ps few = run("deepep", {"communication_sms=4"}).dispatch;
    EXPECT_GT(half, all);
    // Two SMs send 8 copies' worth in twice the time of four.
    EXPECT_NEAR(static_cast<double>(few) / static_cast<double>(half), 2, 0.2);
}

TEST(MoeComm, a_host_that_waits_for_counts_delays_the_layer) {
    Trial run;
    const LayerResult waits = run("deepep");
    const LayerResult worst_case = run("deepep", {"host_waits=false"});
    const Gpu gpu = load_machine("dgx-h800").gpu;
    EXPECT_EQ(waits.time - worst_case.time, gpu.overheads.host_sync + gpu.kernels.graph_replay);
    EXPECT_EQ(waits.dispatch, worst_case.dispatch);
}

TEST(MoeComm, long_one_sided_dispatches_are_bound_by_the_wire) {
    Trial run;
    run.machine = "gb200-nvl72";
    run.routing = "balanced";
    for (const int gpus : {8, 16}) {
        run.gpus = gpus;
        run.tokens = 512;
        const Ps some = run("one-sided").dispatch;
        run.tokens = 1024;
        const Ps twice = run("one-sided").dispatch;
        const double away = 8 - 8.0 / gpus;  // copies of a token that leave its GPU
        const double wire = 512 * away * 14336 / (0.785 * 900e9);
        EXPECT_NEAR(to_seconds(twice - some) / wire, 1, 0.05) << gpus;
    }
}

// Whole layers. Published times begin when the routing is known.

double without_router(const LayerResult& result, const Trial& run) {
    const Gpu gpu = load_machine(run.machine).gpu;
    const GemmPlan logits = plan_gemm(gpu, {run.tokens, run.model.hidden, run.model.experts, true});
    const double router =
        plan_seconds(gpu, logits) + route_seconds(gpu, run.tokens, run.model.experts);
    return 1e6 * (to_seconds(result.time) - router);
}

TEST(MoeComm, fp8_layers_take_as_long_as_published_on_an_h200) {
    struct Published {
        std::int64_t tokens;
        double mega_moe;
        double deepep;
    };
    Trial run;
    run.machine = "dgx-h200";
    run.model = deepseek_v4_flash_shape();
    run.options = {};
    for (const Published& row : {Published{128, 265, 414}, Published{8192, 3269, 4318}}) {
        run.tokens = row.tokens;
        EXPECT_NEAR(without_router(run("mega-moe"), run) / row.mega_moe, 1, 0.15) << row.tokens;
        EXPECT_NEAR(without_router(run("deepep", {"expert_format=fp8"}), run) / row.deepep, 1, 0.15)
            << row.tokens;
    }
}

}  // namespace
}  // namespace moehub::testing::moe_comm_test
