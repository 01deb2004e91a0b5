// Does everyone pay by the same rules? Ideal is a bound for all, whatever software they have.
#include "small_layer.hpp"

#include <moehub/compare.hpp>

#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::testing::fair_test {
namespace {

/// A random layer that is large enough for kernels to matter; the seed says all.
Case random_case(std::uint32_t seed, Software& software) {
    std::mt19937 random(seed);
    const auto pick = [&](std::initializer_list<int> values) {
        return *(values.begin() + random() % values.size());
    };
    const std::vector<std::string> machines = {"dgx-h800", "dgx-h100", "dgx-h200", "gb200-nvl72",
                                               "dgx-b200"};
    Case layer;
    layer.machine =
        with_gpus(load_machine(machines[random() % machines.size()]), pick({1, 2, 3, 4, 8}));
    layer.machine.link.bandwidth *= pick({1, 1, 4});
    layer.machine.link.latency /= pick({1, 1, 100});
    if (pick({0, 1, 2}) == 0) layer.machine.gpu.hbm_bandwidth /= pick({2, 10});
    layer.model = small_model(pick({8, 16, 64}), pick({1, 2, 4}), pick({256, 1024, 4096}));
    layer.model.expert_ffn = pick({256, 1408, 4096});
    layer.model.gated = pick({0, 1}) == 1;
    layer.tokens = pick({64, 512, 2048, 8192});
    layer.routing = std::vector<std::string>{"uniform", "zipf:1", "normal:0.03"}[random() % 3];
    if (pick({0, 1, 2}) == 0) {
        layer.model.shared_experts = 1;
        layer.model.shared_ffn = pick({256, 2048});
    }
    layer.options.pass = pick({0, 1, 2}) == 0 ? Pass::backward : Pass::forward;
    if (pick({0, 1}) == 0) software.host = pick({0, 1}) == 0 ? HostMode::eager : HostMode::graph;
    if (pick({0, 1}) == 0) software.fused_activation = true;
    if (pick({0, 1, 2}) > 0) software.fp8 = pick({0, 1}) == 0;
    return layer;
}

#ifdef MOEHUB_SANITIZED
constexpr std::uint32_t kSeeds = 4;
#else
constexpr std::uint32_t kSeeds = 24;
#endif

class IdealIsABound : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, IdealIsABound, ::testing::Range(0u, kSeeds));

TEST_P(IdealIsABound, of_every_system) {
    Software software;
    const Case layer = random_case(GetParam(), software);
    const Routing routing = make_routing(parse_routing(layer.routing), layer.model, layer.tokens);
    const Placement placement = contiguous_placement(layer.model.experts, layer.machine.gpus());
    const LayerInput input{layer.machine, layer.model, routing, placement};
    SystemSpec ideal = with_software(load_system("ideal"), software);
    ideal.expert_format = NumberFormat::bf16;
    const Ps bf16 = simulate_layer(input, ideal, layer.options).time;
    ideal.expert_format = NumberFormat::fp8;
    const Ps fp8 = simulate_layer(input, ideal, layer.options).time;
    for (const SystemInfo& info : all_systems()) {
        SystemSpec system = with_software(load_system(info.name), software);
        try {
            check_layer(input, system, layer.options);
        } catch (const InputError&) {
            continue;
        }
        const Ps time = simulate_layer(input, system, layer.options).time;
        const Ps bound = system.narrow_experts() ? fp8 : bf16;
        EXPECT_LE(bound, time) << fmt::format(
            "{}, {}: {} {} GPUs, {} tokens, {} pass, {} of ideal", info.name,
            software_words(system), layer.machine.name, layer.machine.gpus(), layer.tokens,
            layer.options.pass == Pass::backward ? "backward" : "forward",
            static_cast<double>(bound) / static_cast<double>(time));
    }
}

}  // namespace
}  // namespace moehub::testing::fair_test
