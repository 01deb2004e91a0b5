// Does every system deliver each row once, return each result once, and compute what the reference
// computes, whatever the machine?
#include "error_of.hpp"
#include "small_layer.hpp"

#include <map>

#include <gtest/gtest.h>

namespace moehub::testing::layer_test {
namespace {

constexpr double kRounding = 1e-12;

class EverySystem : public ::testing::TestWithParam<std::string> {
  protected:
    static void expect_right(const LayerResult& result) {
        EXPECT_TRUE(result.verified);
        EXPECT_LT(result.largest_error, kRounding);
        EXPECT_GT(result.time, 0);
    }
};

INSTANTIATE_TEST_SUITE_P(Systems, EverySystem, ::testing::ValuesIn(system_names()), name_of_system);

TEST_P(EverySystem, computes_the_reference_in_both_grains) {
    Case layer;
    layer.options.verify = true;
    const LayerResult row = layer.run(GetParam());
    layer.options.grain = Grain::packet;
    const LayerResult packet = layer.run(GetParam());
    expect_right(row);
    expect_right(packet);
    EXPECT_EQ(row.rows, 512);
    EXPECT_EQ(row.bytes_up, packet.bytes_up);
    EXPECT_EQ(row.bytes_down, packet.bytes_down);
    EXPECT_EQ(row.payload, packet.payload);
    const double ratio = static_cast<double>(row.time) / static_cast<double>(packet.time);
    EXPECT_NEAR(ratio, 1, 0.01);
}

TEST_P(EverySystem, survives_all_tokens_going_to_one_expert) {
    Case layer;
    layer.model = small_model(8, 1);
    layer.options.verify = true;
    for (const Grain grain : {Grain::row, Grain::packet}) {
        layer.options.grain = grain;
        expect_right(layer.run(GetParam(), everything_to_the_first(layer.model, layer.tokens)));
    }
}

TEST_P(EverySystem, survives_tiny_tables_and_buffers) {
    Case layer;
    layer.machine.moe_hub.rat_entries = 16;
    layer.machine.hub.staging_packets = 1;
    layer.machine.link.buffer_flits = 11;
    layer.options.verify = true;
    for (const Grain grain : {Grain::row, Grain::packet}) {
        layer.options.grain = grain;
        layer.machine.moe_hub.rpm_entries = grain == Grain::row ? 8 : 1;  // row grain has no fewer
        expect_right(layer.run(GetParam()));
        expect_right(layer.run(GetParam(), everything_to_the_first(layer.model, layer.tokens)));
    }
}

TEST_P(EverySystem, takes_longer_on_a_degraded_link_and_loses_nothing) {
    Case layer;
    layer.options.verify = true;
    const LayerResult whole = layer.run(GetParam());
    layer.machine.link.bandwidth /= 10;
    const LayerResult degraded = layer.run(GetParam());
    expect_right(degraded);
    EXPECT_GE(degraded.time, whole.time);
    EXPECT_EQ(degraded.payload, whole.payload);
}

TEST_P(EverySystem, shares_experts_between_tensor_parallel_gpus) {
    Case layer;
    layer.options.verify = true;
    layer.options.tensor_parallel = 2;
    if (!layer.allowed(GetParam())) GTEST_SKIP() << "its experts are whole";
    expect_right(layer.run(GetParam()));
    layer.options.tensor_parallel = 4;
    expect_right(layer.run(GetParam()));
}

TEST_P(EverySystem, runs_on_several_nodes_with_the_same_program) {
    Case layer;
    layer.machine = small_cluster(2);
    layer.machine.gpu = load_gpu("h800-sxm");
    layer.model = small_model(32, 3);
    layer.options.verify = true;
    if (!layer.allowed(GetParam())) GTEST_SKIP() << "it works inside one node";
    for (const Grain grain : {Grain::row, Grain::packet}) {
        layer.options.grain = grain;
        expect_right(layer.run(GetParam()));
    }
}

TEST_P(EverySystem, runs_on_a_mesh) {
    Case layer;
    layer.machine.topology = NodeTopology::mesh;
    layer.machine.switches = 0;
    layer.machine.in_switch = false;
    layer.options.verify = true;
    if (!layer.allowed(GetParam())) GTEST_SKIP() << "it needs switches that reduce";
    expect_right(layer.run(GetParam()));
}

TEST_P(EverySystem, sends_rows_to_replicas) {
    Case layer;
    layer.options.verify = true;
    Placement placement = contiguous_placement(8, 4);
    placement.hosts[0] = {0, 1, 2};
    placement.hosts[5] = {0, 2};
    if (!layer.allowed(GetParam(), placement)) {  // every GPU has as many copies
        placement = contiguous_placement(8, 4);
        for (const std::size_t expert : {0u, 2u, 4u, 6u}) {
            const int home = static_cast<int>(expert) / 2;
            placement.hosts[expert] = {std::min(home, (home + 1) % 4),
                                       std::max(home, (home + 1) % 4)};
        }
    }
    const Routing routing = everything_to_the_first(layer.model, layer.tokens);
    for (const auto policy : {ReplicaPolicy::round_robin, ReplicaPolicy::least_loaded}) {
        layer.options.replicas = policy;
        expect_right(layer.run(GetParam(), routing, placement));
    }
}

TEST_P(EverySystem, runs_with_more_copies_than_experts) {
    Case layer;
    layer.options.verify = true;
    layer.tokens = 1024;
    Placement placement = contiguous_placement(8, 4);
    for (auto& hosts : placement.hosts) hosts = {0, 1, 2, 3};
    const Routing routing = make_routing(parse_routing("zipf:1"), layer.model, layer.tokens);
    expect_right(layer.run(GetParam(), routing, placement));
}

#ifndef MOEHUB_SANITIZED  // times of long layers; others run the same at small size
/// Long enough for what every layer has once not to matter.
Case mixtral() {
    Case layer;
    layer.machine = with_gpus(load_machine("dgx-h800"), 4);
    layer.model = load_model("mixtral-8x7b");
    layer.tokens = 4096;
    return layer;
}

/// Both tests below ask about it.
const LayerResult& mixtral_forward(const std::string& system) {
    static std::map<std::string, LayerResult> results;
    const auto found = results.find(system);
    return found != results.end() ? found->second
                                  : results.emplace(system, mixtral().run(system)).first->second;
}

TEST_P(EverySystem, ends_first_gemms_before_the_last_second_gemm) {
    const LayerResult& result = mixtral_forward(GetParam());
    EXPECT_LT(static_cast<double>(result.first_gemm), 0.99 * static_cast<double>(result.time));
}

TEST_P(EverySystem, runs_backward_for_about_twice_as_long) {
    Case layer = mixtral();
    layer.options.pass = Pass::backward;
    const LayerResult backward = layer.run(GetParam());
    const double ratio =
        static_cast<double>(backward.time) / static_cast<double>(mixtral_forward(GetParam()).time);
    EXPECT_GT(ratio, 1.3);  // twice the operations; rows travel once each way in both
    EXPECT_LT(ratio, 2.3);
}
#endif

TEST_P(EverySystem, computes_the_reference_backward) {
    Case layer;
    layer.options.pass = Pass::backward;
    layer.options.verify = true;
    expect_right(layer.run(GetParam()));
}

TEST_P(EverySystem, runs_shared_experts_and_experts_without_gate) {
    Case layer;
    layer.model.shared_experts = 2;
    layer.model.shared_ffn = 256;
    layer.model.gated = false;
    layer.options.verify = true;
    expect_right(layer.run(GetParam()));
}

TEST_P(EverySystem, runs_on_one_gpu_and_with_fewer_experts_than_gpus) {
    Case layer;
    layer.machine = small_gpus(1);
    layer.options.verify = true;
    expect_right(layer.run(GetParam()));
    layer.machine = small_gpus(4);
    layer.model = small_model(2, 2);
    if (layer.allowed(GetParam())) expect_right(layer.run(GetParam()));
}

TEST_P(EverySystem, moves_rows_alone_where_it_can) {
    Case layer;
    layer.options.verify = true;
    layer.options.compute = false;
    if (!layer.allowed(GetParam())) GTEST_SKIP() << "its rows do not move by themselves";
    const LayerResult moved = layer.run(GetParam());
    EXPECT_LT(moved.largest_error, kRounding);
    EXPECT_GT(moved.dispatch, 0);
    EXPECT_GT(moved.combine, 0);
    layer.options.compute = true;
    EXPECT_EQ(moved.payload, layer.run(GetParam()).payload);
}

TEST_P(EverySystem, gives_the_same_bytes_every_time) {
    Case layer;
    layer.routing = "zipf:1.2";
    const LayerResult first = layer.run(GetParam());
    const LayerResult second = layer.run(GetParam());
    EXPECT_EQ(first.time, second.time);
    EXPECT_EQ(first.events, second.events);
    EXPECT_EQ(first.sm_busy, second.sm_busy);
}

TEST_P(EverySystem, breaks_its_time_down_into_parts_that_add_up) {
    const LayerResult result = Case{}.run(GetParam());
    const Breakdown& parts = result.breakdown;
    EXPECT_EQ(parts.compute + parts.communication + parts.host, result.time);
    EXPECT_GE(parts.host, 0);
    EXPECT_GT(result.sm_busy, 0);
    EXPECT_LE(result.sm_busy, 1);
    EXPECT_GT(result.first_gemm, 0);
    EXPECT_LT(result.first_gemm, result.time);
}

#ifndef MOEHUB_SANITIZED  // fair_test.cpp runs smaller ones there
TEST(Layer, nothing_beats_ideal) {
    for (const char* model : {"mixtral-8x7b", "qwen2-moe-2.7b", "deepseek-v2-lite"}) {
        for (const int tokens : {64, 512, 4096}) {
            Case layer;
            layer.machine = with_gpus(load_machine("dgx-h800"), 8);
            layer.model = load_model(model);
            layer.tokens = tokens;
            const Ps ideal = layer.run("ideal").time;
            for (const std::string& system : system_names()) {
                if (!layer.allowed(system) || load_system(system).narrow_experts()) continue;
                EXPECT_GE(layer.run(system).time, ideal)
                    << system << ", " << model << ", " << tokens << " tokens";
            }
        }
    }
}
#endif

TEST_P(EverySystem, cannot_read_weights_faster_than_hbm) {
    Case layer;
    layer.machine = with_gpus(load_machine("dgx-h800"), 8);
    layer.machine.gpu.hbm_bandwidth = 100e9;
    layer.model = load_model("qwen2-moe-2.7b-moehub");
    layer.tokens = 512;
    const double element = load_system(GetParam()).narrow_experts() ? 1 : 2;
    const double weights = 8.0 * 3 * 2048 * 1408 * element;  // a GPU's eight experts
    EXPECT_GT(to_seconds(layer.run(GetParam()).time), weights / 100e9);
}

TEST_P(EverySystem, does_not_find_the_weights_of_few_experts_in_l2) {
    Case layer;
    layer.machine = with_gpus(load_machine("gb200-nvl72"), 64);
    layer.machine.gpu.hbm_bandwidth = 100e9;
    layer.model = load_model("qwen3-30b-a3b");
    layer.tokens = 4096;
    if (!layer.allowed(GetParam())) GTEST_SKIP() << "it needs another machine";
    const double element = load_system(GetParam()).narrow_experts() ? 1 : 2;
    const double weights = 2.0 * 3 * 2048 * 768 * element;  // a GPU's two experts
    EXPECT_GT(to_seconds(layer.run(GetParam()).time), weights / 100e9);
}

TEST(Layer, a_kernel_that_waits_for_communication_to_leave_the_sms_hides_nothing) {
    Case layer;
    layer.machine = load_machine("dgx-h200");
    layer.model = load_model("deepseek-v3");
    layer.machine.gpu.sms = 128;
    layer.tokens = 32768;
    const LayerResult result = layer.run("deepep-ll");
    // Its dispatch and combine, two experts an SM, hold all SMs, so the shared experts wait.
    EXPECT_GT(result.breakdown.communication, (result.dispatch + result.combine) / 2);
}

TEST(Layer, the_rpm_gains_more_on_longer_inputs) {
    Case layer;
    layer.machine = with_gpus(load_machine("dgx-h800"), 8);
    layer.model = load_model("qwen2-moe-2.7b");
    double rpm[2];
    for (const int i : {0, 1}) {
        layer.tokens = i == 0 ? 4096 : 16384;
        rpm[i] = static_cast<double>(layer.run("mh-base").first_gemm) /
                 static_cast<double>(layer.run("mh-pkt").first_gemm);
    }
    EXPECT_GT(rpm[0], 1.05);
    EXPECT_GT(rpm[1], rpm[0]);
}

TEST(Layer, one_copy_of_every_row_crosses_for_each_expert_elsewhere) {
    Case layer;
    const LayerResult hub = layer.run("moe-hub");
    const LayerResult megatron = layer.run("megatron-te");
    const Routing routing = make_routing(parse_routing("uniform"), layer.model, layer.tokens);
    Bytes away = 0;
    for (std::int64_t token = 0; token < layer.tokens; ++token) {
        for (const int expert : routing.chosen_by(0, token)) {
            if (expert / 2 != token * 4 / layer.tokens) ++away;
        }
    }
    const Bytes row = 2 * layer.model.hidden;
    const Bytes columns = 16 * away;
    const Bytes done = 16 * 4 * 3;  // every GPU tells every other that it has sent everything
    EXPECT_EQ(hub.payload, 2 * away * row + columns + done);
    const Bytes counts = 4 * 8 * 4 * 3;
    EXPECT_EQ(megatron.payload, 2 * away * row + 4 * away + counts);
}

// Bad input.

std::string error_of(const Case& layer, const std::string& system = "moe-hub") {
    return moehub::error_of([&] { layer.run(system); });
}

TEST(Layer, a_region_or_pool_too_small_is_an_error_that_names_it_and_the_sizes) {
    Case small_region;
    small_region.options.region_rows = 10;
    Case small_pool;
    small_pool.options.page_rows = 64;
    small_pool.options.page_pool = 100'000;
    for (const std::string& text : {error_of(small_region), error_of(small_pool)})
        EXPECT_NE(text.find("input of expert"), std::string::npos) << text;
    EXPECT_NE(error_of(small_region).find("10 rows"), std::string::npos);
    EXPECT_NE(error_of(small_pool).find("100000"), std::string::npos);
}

TEST(Layer, an_error_while_kernels_run_leaves_nothing_behind) {
    Case layer;
    layer.model.shared_experts = 1;
    layer.model.shared_ffn = 4096;
    layer.options.region_rows = 10;
    EXPECT_NE(error_of(layer).find("10 rows"), std::string::npos);
    layer.options.region_rows = 0;
    layer.options.page_rows = 64;
    layer.options.page_pool = 200'000;
    EXPECT_NE(error_of(layer).find("200000"), std::string::npos);
}

TEST(Layer, refuses_what_does_not_fit_before_anything_runs) {
    Case layer;
    layer.options.tensor_parallel = 3;
    EXPECT_NE(error_of(layer).find("tensor parallel: found 3"), std::string::npos);
    layer.options.tensor_parallel = 1;
    layer.tokens = 3;
    EXPECT_NE(error_of(layer).find("tokens: found 3"), std::string::npos);
    layer.tokens = 256;
    EXPECT_NE(error_of(layer, "moehub").find("unknown system \"moehub\"; did you mean \"moe-hub\""),
              std::string::npos);
    layer.model.experts = 0;
    EXPECT_NE(error_of(layer), "no error");
}

}  // namespace
}  // namespace moehub::testing::layer_test
