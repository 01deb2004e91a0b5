// Does every system deliver each row once and return each result once on random machines, models,
// routings, placements and table sizes? A seed that fails is in the test's name.
#include "small_layer.hpp"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace moehub::testing::random_layer_test {
namespace {

#ifdef MOEHUB_SANITIZED
constexpr int kSeeds = 10;
#else
constexpr int kSeeds = 30;
#endif

class RandomLayer : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomLayer, ::testing::Range(0, kSeeds));

TEST_P(RandomLayer, every_row_once_dense_and_right_in_both_grains) {
    std::mt19937 random(static_cast<std::uint32_t>(GetParam()));
    const auto pick = [&](std::initializer_list<int> values) {
        return *(values.begin() + random() % values.size());
    };
    Case layer;
    layer.machine = pick({0, 1}) == 0 ? small_gpus(pick({2, 3, 8})) : small_cluster(pick({2, 3}));
    layer.machine.gpu = load_gpu("h800-sxm");
    layer.machine.moe_hub.rat_entries = pick({1, 16, 100, 16384});
    layer.machine.moe_hub.rat_banks = pick({1, 4, 16});
    layer.machine.moe_hub.rpm_entries = pick({1, 3, 64});
    layer.machine.moe_hub.rpm_timer = pick({0, 100, 1000}) * kNs;
    layer.machine.moe_hub.store_bytes = pick({32, 64, 128});
    layer.machine.link.buffer_flits = pick({11, 256});
    const int gpus = layer.machine.gpus();
    layer.model = small_model(pick({4, 9, 32}), pick({1, 2, 4}), pick({64, 100, 1024}));
    layer.model.expert_ffn = 768;
    layer.tokens = pick({24, 100, 301});
    layer.routing = GetParam() % 3 == 0   ? "uniform"
                    : GetParam() % 3 == 1 ? "zipf:1.5"
                                          : "normal:0.05";
    layer.options.tensor_parallel = gpus % 3 == 0 ? pick({1, 3}) : pick({1, 2});
    if (gpus % layer.options.tensor_parallel != 0) layer.options.tensor_parallel = 1;
    layer.options.page_rows = pick({0, 7, 64});
    layer.options.verify = true;
    if (pick({0, 1}) == 1) {
        layer.model.shared_experts = 1;
        layer.model.shared_ffn = 256;
    }
    const Routing routing = make_routing(parse_routing(layer.routing), layer.model, layer.tokens);
    std::vector<long long> rows(static_cast<std::size_t>(layer.model.experts));
    for (const int expert : routing.chosen) ++rows[static_cast<std::size_t>(expert)];
    const Placement placement = with_replicas(
        contiguous_placement(layer.model.experts, gpus / layer.options.tensor_parallel), rows,
        gpus / layer.options.tensor_parallel > 1 ? pick({0, 3}) : 0);
    for (const std::string& system : system_names()) {
        if (!layer.allowed(system, placement)) continue;
        LayerResult results[2];
        for (const Grain grain : {Grain::packet, Grain::row}) {
            layer.options.grain = grain;
            LayerResult& result = results[grain == Grain::row ? 1 : 0];
            result = layer.run(system, routing, placement);
            EXPECT_LT(result.largest_error, 1e-11) << system;
        }
        EXPECT_EQ(results[0].payload, results[1].payload) << system;
        EXPECT_EQ(results[0].bytes_up, results[1].bytes_up) << system;
    }
}

/// Every system that can, on every machine, with every model with experts, at small size.
TEST(EveryPreset, runs_under_every_system_or_is_refused_in_one_line) {
    std::map<std::string, int> runs;
    for (const std::string& machine : preset_names("machines")) {
        Case layer;
        layer.machine = load_machine(machine);
        if (layer.machine.gpus() > 8) layer.machine = with_gpus(layer.machine, 8);
        layer.model = small_model(48, 4);
        layer.tokens = 96;
        for (const std::string& system : system_names()) {
            if (!layer.allowed(system)) continue;
            EXPECT_GT(layer.run(system).time, 0) << system << " on " << machine;
            ++runs[system];
        }
    }
    for (const std::string& name : preset_names("models")) {
        Case layer;
        layer.machine = with_gpus(load_machine("dgx-h200"), 4);
        layer.model = load_model(name);
        layer.tokens = 16;
        if (layer.model.experts == 0) continue;
        for (const std::string& system : system_names()) {
            if (!layer.allowed(system)) continue;
            EXPECT_GT(layer.run(system).time, 0) << system << " with " << name;
            ++runs[system];
        }
    }
    for (const std::string& system : system_names()) EXPECT_GT(runs[system], 9) << system;
}

}  // namespace
}  // namespace moehub::testing::random_layer_test
