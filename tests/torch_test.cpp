// Does the plain PyTorch layer compute the reference on one GPU, and does its host matter?
#include "small_layer.hpp"
#include "systems/systems.hpp"

#include <moehub/error.hpp>

#include <gtest/gtest.h>

namespace moehub::testing::torch_test {
namespace {

Case one_gpu() {
    Case layer;
    layer.machine = small_gpus(1);
    return layer;
}

Case mixtral(std::int64_t tokens) {
    Case layer;
    layer.machine = with_gpus(load_machine("dgx-h200"), 1);
    layer.model = load_model("mixtral-8x7b");
    layer.tokens = tokens;
    return layer;
}

LayerInput input_of(const Case& layer) {
    return {layer.machine, layer.model,
            make_routing(parse_routing(layer.routing), layer.model, layer.tokens),
            contiguous_placement(layer.model.experts, 1)};
}

TEST(Torch, computes_the_reference_forward_and_backward) {
    Case layer = one_gpu();
    layer.options.verify = true;
    layer.model.shared_experts = 1;
    layer.model.shared_ffn = 256;
    for (const bool gated : {true, false}) {
        layer.model.gated = gated;
        for (const Pass pass : {Pass::forward, Pass::backward}) {
            layer.options.pass = pass;
            const LayerResult result = layer.run("torch");
            EXPECT_TRUE(result.verified);
            EXPECT_LT(result.largest_error, 1e-12);
            EXPECT_EQ(result.payload, 0);
        }
    }
}

TEST(Torch, survives_experts_without_rows) {
    Case layer = one_gpu();
    layer.options.verify = true;
    const Routing routing = everything_to_the_first(layer.model, layer.tokens);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
        layer.options.pass = pass;
        EXPECT_LT(layer.run("torch", routing).largest_error, 1e-12);
    }
}

TEST(Torch, needs_one_gpu) {
    EXPECT_FALSE(Case{}.allowed("torch"));
    EXPECT_TRUE(one_gpu().allowed("torch"));
}

TEST(Torch, fuses_nothing_and_computes_in_bf16) {
    const Case layer = one_gpu();
    SystemSpec system = load_system("torch");
    system.fused_activation = true;
    EXPECT_THROW(check_layer(input_of(layer), system, layer.options), InputError);
    system = load_system("torch");
    system.expert_format = NumberFormat::fp8;
    EXPECT_THROW(check_layer(input_of(layer), system, layer.options), InputError);
}

TEST(Torch, takes_about_twice_as_long_on_the_way_back) {
    Case layer = mixtral(8192);
    const auto forward = static_cast<double>(layer.run("torch").time);
    layer.options.pass = Pass::backward;
    const double ratio = static_cast<double>(layer.run("torch").time) / forward;
    EXPECT_GT(ratio, 1.8);
    EXPECT_LT(ratio, 2.4);
}

TEST(Torch, is_as_long_as_its_host_needs_where_kernels_are_short) {
    Case layer = one_gpu();
    layer.tokens = 16;
    const Ps each = layer.machine.gpu.overheads.eager_launch;
    const LayerInput input = input_of(layer);
    SystemSpec system = load_system("torch");
    const LayerResult idle = systems::run_job({input, system, layer.options, Ps{0}});
    EXPECT_GE(idle.time, 17 * each);
    EXPECT_LT(idle.time, 17 * each + 20 * kUs);
    layer.options.recorded = true;
    EXPECT_GT(systems::run_job({input, system, layer.options, Ps{0}}).time, idle.time);
    system.host = HostMode::graph;
    EXPECT_LT(systems::run_job({input, system, layer.options, Ps{0}}).time, 8 * each);
}

TEST(Torch, has_a_host_that_runs_ahead_of_long_kernels) {
    const Case layer = mixtral(8192);
    const LayerInput input = input_of(layer);
    SystemSpec system = load_system("torch");
    const LayerResult eager = systems::run_job({input, system, layer.options, Ps{0}});
    system.host = HostMode::graph;
    const LayerResult graph = systems::run_job({input, system, layer.options, Ps{0}});
    EXPECT_GT(eager.time, graph.time);
    EXPECT_LT(eager.time, graph.time + 10 * layer.machine.gpu.overheads.eager_launch);
    EXPECT_GT(eager.host_lead, eager.time / 2);
}

}  // namespace
}  // namespace moehub::testing::torch_test
