// Does each system pay for the SMs, the memory, the tables and the host that it uses?
#include "small_layer.hpp"

#include <moehub/compare.hpp>
#include <moehub/gain.hpp>

#include <algorithm>

#include <gtest/gtest.h>

namespace moehub::testing::pays_test {
namespace {

struct Trial {
    Machine machine = with_gpus(load_machine("dgx-h800"), 4);
    Model model = small_model(8, 2, 4096);
    std::int64_t tokens = 1024;
    LayerOptions options;

    LayerResult operator()(const std::string& system, const Overrides& changes = {}) const {
        const Routing routing = make_routing({}, model, tokens);
        const Placement placement = contiguous_placement(model.experts, machine.gpus());
        return simulate_layer({machine, model, routing, placement}, load_system(system, changes),
                              options);
    }
    double row_bytes() const { return 2.0 * model.hidden; }
    double rows_of_a_gpu() const {
        return static_cast<double>(tokens) * model.top_k / machine.gpus();
    }
};

double statistic(const LayerResult& result, const std::string& unit, const std::string& name) {
    for (const Statistic& one : result.statistics)
        if (one.unit == unit && one.name == name) return one.value;
    return -1;
}

TEST(Pays, one_sending_sm_moves_what_one_sm_can) {
    const Trial run;
    const Kernels& kernels = run.machine.gpu.kernels;
    const double rate = 1 / (1 / kernels.row_load + 1 / kernels.row_store);
    const double alone = run.rows_of_a_gpu() * run.row_bytes() / rate;
    for (const std::string system : {"moe-hub", "mh-base", "flashdmoe"}) {
        EXPECT_GT(to_seconds(run(system, {"sending_sms=1"}).time), alone) << system;
        EXPECT_GT(run(system, {"sending_sms=1"}).time, run(system).time) << system;
    }
}

TEST(Pays, sms_that_send_are_missing_elsewhere) {
    Trial run;
    run.model.expert_ffn = 14336;
    const Ps few = run("moe-hub", {"sending_sms=16"}).time;
    EXPECT_GT(run("moe-hub", {"sending_sms=120"}).time, few);
}

/// However fast the links: rows are read at their sender and written where they arrive.
TEST(Pays, rows_pass_the_memory) {
    Trial run;
    run.machine.gpu.hbm_bandwidth = 20e9;
    run.machine.link.bandwidth *= 10;
    run.options.compute = false;
    const double arrived = run.rows_of_a_gpu() * run.row_bytes();
    const double written = arrived / (run.machine.gpu.kernels.hbm_write * 20e9);
    for (const std::string system : {"megatron-te", "tutel", "deepep-ll", "one-sided", "nvls"}) {
        const LayerResult result = run(system, {"dispatch_element=2"});
        EXPECT_GT(to_seconds(result.dispatch), 0.8 * written) << system;
    }
}

TEST(Pays, rows_to_the_own_gpu_take_their_time) {
    Trial run;
    run.machine = with_gpus(load_machine("dgx-h800"), 1);
    run.model.expert_ffn = 256;
    const Kernels& kernels = run.machine.gpu.kernels;
    const double rate = 1 / (1 / kernels.row_load + 1 / kernels.row_store);
    const double sending = run.rows_of_a_gpu() * run.row_bytes() / rate / 16;
    const LayerResult hub = run("moe-hub");
    EXPECT_EQ(hub.bytes_up, 0);
    EXPECT_GT(to_seconds(hub.first_gemm), sending);
    EXPECT_GT(run("megatron-te", {"host=graph"}).time, run("ideal").time);
}

/// An AAU that needs a microsecond for a packet decides how fast rows are taken in; in packet
/// grain the switch waits for it.
TEST(Pays, a_slow_ingress_holds_up_its_rows) {
    Trial run;
    run.tokens = 128;
    run.machine.moe_hub.rat_lookup = kUs;
    run.machine.moe_hub.rat_banks = 1;
    const double packets = run.rows_of_a_gpu() * run.row_bytes() / 128;
    for (const Grain grain : {Grain::packet, Grain::row}) {
        run.options.grain = grain;
        EXPECT_GT(to_us(run("moe-hub").first_gemm), 0.8 * packets);
    }
}

TEST(Pays, a_dam_with_few_counters_reads_them_from_memory) {
    Trial run;
    run.model.experts = 64;
    run.tokens = 4096;
    const LayerResult all = run("moe-hub");
    EXPECT_EQ(statistic(all, "dam", "restored"), 0);
    run.machine.moe_hub.dam_entries = 1;
    const LayerResult one = run("moe-hub");
    EXPECT_GT(statistic(one, "dam", "restored"), 0);
    EXPECT_GE(one.first_gemm, all.first_gemm);
}

TEST(Pays, row_grain_refuses_an_rpm_that_it_would_not_show) {
    Trial run;
    run.tokens = 64;
    run.machine.moe_hub.rpm_entries = 4;
    EXPECT_THROW(run("moe-hub"), InputError);
    run.options.grain = Grain::packet;
    EXPECT_GT(run("moe-hub").time, 0);
}

TEST(Pays, whoever_must_know_counts_waits_in_a_graph_too) {
    Trial run;
    for (const std::string system :
         {"megatron-te", "fastermoe", "tutel", "ccfuser", "comet", "deepep"}) {
        const LayerResult graph = run(system, {"host=graph"});
        EXPECT_TRUE(graph.host_waits) << system;
        EXPECT_GE(graph.breakdown.host, run.machine.gpu.overheads.host_sync / 2) << system;
        EXPECT_LT(graph.time, run(system, {"host=eager"}).time) << system;
    }
    for (const std::string system : {"deepep-ll", "one-sided", "nvls", "flashdmoe", "moe-hub"}) {
        EXPECT_FALSE(run(system, {"host=eager"}).host_waits) << system;
    }
}

/// Four operators of the router, three kernels, the sum.
TEST(Pays, a_slow_host_decides_a_layer_that_never_waits) {
    Trial run;
    run.tokens = 64;
    run.machine.gpu.overheads.eager_launch = 1000 * kUs;
    const Ps time = run("moe-hub", {"host=eager"}).time;
    EXPECT_GE(time, 8 * run.machine.gpu.overheads.eager_launch);
    EXPECT_LT(time, 9 * run.machine.gpu.overheads.eager_launch);
    run.machine.gpu.overheads.eager_launch = 1 * kUs;
    run.tokens = 4096;
    EXPECT_EQ(run("moe-hub", {"host=eager"}).time, run("moe-hub").time) << "a fast one is ahead";
}

/// Between the two, the time of a layer must not jump: more tokens, more time, whatever the host.
TEST(Pays, an_eager_host_costs_at_most_what_it_takes_to_issue) {
    Trial run;
    run.machine = with_gpus(load_machine("dgx-h200"), 4);
    const Ps issuing = 8 * run.machine.gpu.overheads.eager_launch;
    Ps before = 0;
    for (run.tokens = 256; run.tokens <= 8192; run.tokens *= 2) {
        const Ps graph = run("moe-hub").time;
        const Ps eager = run("moe-hub", {"host=eager"}).time;
        EXPECT_GE(eager, graph) << run.tokens;
        EXPECT_LE(eager, std::max(graph, issuing) * 102 / 100) << run.tokens;
        EXPECT_GE(eager, before * 98 / 100) << run.tokens;
        before = eager;
    }
}

TEST(Pays, a_fused_activation_on_the_way_back_reads_what_it_needs) {
    Trial run;
    run.options.pass = Pass::backward;
    run.machine.gpu.hbm_bandwidth /= 10;
    const double rows = run.rows_of_a_gpu();
    const double bytes = rows * run.model.expert_ffn * 2 * 4;  // gate and up, and their gradients
    const Ps fused = run("ideal", {"fused_activation=true"}).time;
    run.model.gated = false;
    const Ps plain = run("ideal", {"fused_activation=true"}).time;
    EXPECT_GT(to_seconds(fused - plain), 0.4 * bytes / run.machine.gpu.hbm_bandwidth);
}

TEST(Pays, a_fused_activation_saves_its_kernel_and_half_of_the_stores) {
    Trial run;
    for (const std::string system : {"ideal", "megatron-te", "deepep", "moe-hub", "nvls"}) {
        const Ps apart = run(system, {"fused_activation=false"}).time;
        const Ps fused = run(system, {"fused_activation=true"}).time;
        EXPECT_GT(apart - fused, run.machine.gpu.kernels.stream_start / 2) << system;
    }
    EXPECT_THROW(run("flashdmoe", {"fused_activation=false"}), InputError);
}

TEST(Pays, fp8_sends_half_of_the_rows_and_computes_faster) {
    Trial run;
    run.model.expert_ffn = 14336;
    run.tokens = 8192;
    for (const std::string system : {"megatron-te", "fastermoe", "tutel", "ccfuser", "comet",
                                     "deepep", "deepep-ll", "one-sided", "flashdmoe", "moe-hub"}) {
        const LayerResult bf16 = run(system, {"dispatch_element=2"});
        const LayerResult fp8 = run(system, {"dispatch_element=1", "expert_format=fp8"});
        EXPECT_LT(static_cast<double>(fp8.bytes_up) / static_cast<double>(bf16.bytes_up), 0.8)
            << system;
        EXPECT_LT(fp8.time, bf16.time) << system;
    }
}

TEST(Pays, the_steps_of_a_gain_lead_from_the_baseline_to_the_system) {
    const Trial run;
    const Routing routing = make_routing({}, run.model, run.tokens);
    const Placement placement = contiguous_placement(run.model.experts, 4);
    GainOptions options;
    options.todays = load_systems(todays_systems());
    const Gain gain = explain_gain({run.machine, run.model, routing, placement},
                                   load_system("moe-hub"), load_system("megatron-te"), options);
    ASSERT_EQ(gain.steps.size(), 5u);
    EXPECT_EQ(gain.steps.front().time, run("megatron-te").time);
    EXPECT_EQ(gain.steps[1].time, run("megatron-te", {"host=graph"}).time);
    EXPECT_EQ(gain.steps.back().time, run("moe-hub").time);
    EXPECT_LE(gain.ideal, gain.steps.back().time);
    EXPECT_EQ(gain.ideal, run("ideal").time);
}

}  // namespace
}  // namespace moehub::testing::pays_test
