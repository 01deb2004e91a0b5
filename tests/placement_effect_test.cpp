// Is a layout's predicted time that of its simulated layers, and does what it cannot do end in one
// line?
#include "small_layer.hpp"

#include <moehub/compare.hpp>
#include <moehub/model_time.hpp>
#include <moehub/placement_effect.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

namespace moehub::placement_effect_test {
namespace {

Profile profile_from(const Routing& routing) {
    Profile profile;
    profile.name = "made by hand";
    profile.layers = routing.layers;
    profile.experts = routing.experts;
    profile.top_k = routing.top_k;
    profile.tokens = routing.tokens;
    profile.chosen = routing.chosen.copy();
    for (int layer = 0; layer < profile.layers; ++layer) profile.layer_numbers.push_back(layer);
    profile.model_layers = profile.layers;
    count_choices(profile);
    return profile;
}

/// A small model of three layers on four GPUs. Experts 0 and 1 are asked for most: contiguous, they
/// lie on one GPU, round robin on two.
struct Small {
    Machine machine = testing::small_gpus(4);
    Model model = testing::small_model(8, 2, 1024);
    Profile profile;
    std::vector<NamedLayout> layouts;
    std::vector<SystemSpec> systems = load_systems({"megatron-te"});
    EffectOptions options;

    Small() {
        machine.gpu.overheads.eager_launch = 0;  // so small a layer would wait for its host alone
        model.layers = 3;
        model.expert_ffn = 4096;
        Routing routing = make_routing({}, model, 2048, 3);
        std::vector<std::uint16_t> chosen = routing.chosen.copy();
        for (std::size_t i = 0; i < chosen.size(); i += 2) {
            if (i % 8 == 6) continue;  // three tokens of four
            chosen[i] = 0;
            chosen[i + 1] = 1;
        }
        routing.chosen = std::move(chosen);
        profile = profile_from(routing);
        layouts = {{"contiguous", contiguous_layout({3, 8}, 4)},
                   {"round robin", round_robin_layout({3, 8}, 4)}};
        options.step_tokens = 1024;
    }
    PlacementEffect run() const {
        return placement_effect({machine, model, profile, layouts, systems}, options);
    }
    std::string refusal() const {
        try {
            run();
        } catch (const InputError& error) {
            EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
            return error.what();
        }
        return "";
    }
};

TEST(PlacementEffect, a_layer_is_the_one_that_is_simulated_alone) {
    const Small small;
    const PlacementEffect effect = small.run();
    EXPECT_EQ(effect.steps, 2);
    EXPECT_EQ(effect.step_tokens, 1024);
    ASSERT_EQ(effect.layouts.size(), 2u);
    Routing second{8, 2, 1, 1024, {}, std::vector<float>(2048, 0.5f)};
    const auto first = small.profile.chosen.begin() + 2 * (2048 * 2) + 1024 * 2;
    second.chosen = std::vector(first, first + 2048);
    Routing first_step = second;
    first_step.chosen = std::vector(first - 2048, first);
    const Placement placement = placement_of(small.layouts[1].layout, 2);
    const auto time = [&](const Routing& routing) {
        return simulate_layer({small.machine, small.model, routing, placement}, "megatron-te", {})
            .time;
    };
    EXPECT_EQ(effect.layouts[1].by_layer[2], (time(first_step) + time(second) + 1) / 2);
}

TEST(PlacementEffect, a_balanced_layout_is_faster) {
    const PlacementEffect effect = Small().run();
    const LayoutEffect& contiguous = effect.layouts[0];
    const LayoutEffect& spread = effect.layouts[1];
    EXPECT_EQ(contiguous.speedup, 1);
    EXPECT_GT(spread.speedup, 1.1);
    EXPECT_GT(saved(contiguous.processing.mean, spread.processing.mean), 0.2);
    EXPECT_GT(saved(contiguous.all_to_all.worst, spread.all_to_all.worst), 0.05);
    EXPECT_FALSE(spread.fused);
}

TEST(PlacementEffect, mean_and_tail_follow_from_the_layers) {
    Small small;
    small.options.most_steps = 1;
    const LayoutEffect one = small.run().layouts[0];
    ASSERT_EQ(one.by_layer.size(), 3u);
    EXPECT_EQ(one.layer.worst, *std::max_element(one.by_layer.begin(), one.by_layer.end()));
    EXPECT_EQ(one.layer.p95, one.layer.worst) << "of three";
    EXPECT_EQ(one.moe_layers, one.by_layer[0] + one.by_layer[1] + one.by_layer[2]);
    EXPECT_EQ(one.layer.mean, (one.moe_layers + 1) / 3);
}

TEST(PlacementEffect, p95_is_below_the_worst_of_many_steps) {
    Small small;
    small.options.step_tokens = 64;  // 32 steps, of three layers
    small.options.most_steps = 32;
    for (std::size_t i = 0; i < 128; i += 2) {  // the first step, one expert pair for all
        small.profile.chosen[i] = 6;
        small.profile.chosen[i + 1] = 7;
    }
    const LayoutEffect one = small.run().layouts[0];
    EXPECT_LT(one.processing.p95, one.processing.worst);
    EXPECT_LE(one.processing.mean, one.processing.p95);
}

TEST(PlacementEffect, steps_are_further_tokens_of_the_profile) {
    Small small;
    for (std::size_t i = 2048; i < 4096; i += 2) {  // the second step of layer 0
        small.profile.chosen[i] = 0;
        small.profile.chosen[i + 1] = 1;
    }
    small.options.most_steps = 1;
    const PlacementEffect one = small.run();
    small.options.most_steps = 7;
    const PlacementEffect both = small.run();
    EXPECT_EQ(one.steps, 1);
    EXPECT_EQ(both.steps, 2) << "the profile has no more";
    EXPECT_GT(both.layouts[0].by_layer[0], one.layouts[0].by_layer[0]);
}

TEST(PlacementEffect, incomplete_tokens_are_passed_over) {
    Small small;
    small.options.most_steps = 1;
    const PlacementEffect whole = small.run();
    Small with_gap = small;
    with_gap.profile.tokens += 1;
    with_gap.profile.chosen.clear();
    for (int layer = 0; layer < 3; ++layer) {
        with_gap.profile.chosen.push_back(layer == 1 ? Profile::kNobody : 3);
        with_gap.profile.chosen.push_back(4);
        const auto first = small.profile.chosen.begin() + layer * 4096;
        with_gap.profile.chosen.insert(with_gap.profile.chosen.end(), first, first + 4096);
    }
    const PlacementEffect effect = with_gap.run();
    EXPECT_EQ(effect.layouts[0].by_layer, whole.layouts[0].by_layer);
    const std::string note = effect.notes.empty() ? "" : effect.notes.front();
    EXPECT_EQ(note, "1 tokens with fewer than 2 experts in some layer were passed over");
}

TEST(PlacementEffect, the_whole_model_is_its_layers_and_the_rest) {
    Small small;
    EXPECT_EQ(small.run().layouts[0].model, 0) << "no attention";
    EXPECT_EQ(small.run().notes.size(), 1u);
    small.model.attention = {Attention::Form::gqa, 8, 8, 128};
    small.model.vocab = 1000;
    small.model.sequence = 256;
    const LayoutEffect one = small.run().layouts[1];
    const Routing routing = make_routing({}, small.model, 1024);
    const Placement placement = contiguous_placement(8, 4);
    const ModelTime whole =
        simulate_models({small.machine, small.model, routing, placement}, small.systems, {})
            .front();
    EXPECT_EQ(one.model - 3 * one.layer.mean, whole.total - 3 * whole.moe->time);
}

TEST(PlacementEffect, systems_that_overlap_are_told_apart) {
    Small small;
    small.systems = load_systems({"moe-hub", "megatron-te"});
    small.options.most_steps = 1;
    const PlacementEffect effect = small.run();
    ASSERT_EQ(effect.layouts.size(), 4u);
    EXPECT_EQ(effect.layouts[1].system, "moe-hub");
    EXPECT_EQ(effect.layouts[1].layout, "round robin");
    EXPECT_TRUE(effect.layouts[1].fused);
    EXPECT_EQ(effect.layouts[2].system, "megatron-te");
    EXPECT_EQ(effect.layouts[2].speedup, 1) << "against its own first layout";
    EXPECT_LT(effect.layouts[1].layer.mean, effect.layouts[3].layer.mean);
}

TEST(PlacementEffect, gpus_share_experts) {
    Small small;
    small.options.tensor_parallel = 2;
    small.layouts = {{"two groups", contiguous_layout({3, 8}, 2)}};
    EXPECT_GT(small.run().layouts[0].layer.mean, 0);
}

TEST(PlacementEffect, threads_get_the_same_times) {
    Small small;
    small.options.threads = 1;
    const PlacementEffect one = small.run();
    small.options.threads = 3;
    std::size_t most = 0;
    small.options.progress = [&](std::size_t done, std::size_t total) {
        EXPECT_EQ(total, 12u);
        most = std::max(most, done);
    };
    const PlacementEffect three = small.run();
    EXPECT_EQ(most, 12u);
    for (std::size_t i = 0; i < 2; ++i)
        EXPECT_EQ(one.layouts[i].by_layer, three.layouts[i].by_layer);
}

TEST(PlacementEffectRefuses, a_profile_of_counts) {
    Small small;
    small.profile.tokens = 0;
    EXPECT_EQ(small.refusal(),
              "made by hand: found only counts, allowed: every token's experts, to simulate its "
              "layers");
}

TEST(PlacementEffectRefuses, sizes_that_do_not_fit) {
    Small other_model;
    other_model.model.experts = 16;
    EXPECT_EQ(other_model.refusal(),
              "made by hand: found top-2 of 8 experts, allowed: top-2 of 16 as \"small\" has");
    Small layers;
    layers.model.layers = 2;
    EXPECT_EQ(layers.refusal(),
              "made by hand: found 3 layers, allowed: 1 to 2, the MoE layers of \"small\"");
    Small gpus;
    gpus.options.tensor_parallel = 2;
    EXPECT_EQ(gpus.refusal(),
              "layout \"contiguous\": found 4 GPUs, 2 for each expert, allowed: as many as "
              "\"test\" has, 4 in all");
    Small layout;
    layout.layouts[1].layout = contiguous_layout({2, 8}, 4);
    EXPECT_EQ(layout.refusal(),
              "layout \"round robin\": found 2 layers of 8 experts, allowed: 3 of 8 as the "
              "profile has");
    Small steps;
    steps.options.step_tokens = 0;
    EXPECT_EQ(steps.refusal(), "effect: tokens of a step: found 0, allowed: 1 or more");
    Small few;
    few.options.step_tokens = 3;
    EXPECT_NE(few.refusal().find("tokens: found 3, at least one for each of the 4 GPUs"),
              std::string::npos);
    Small none;
    none.layouts.clear();
    EXPECT_EQ(none.refusal(), "effect: found no layout, allowed: 1 or more");
}

TEST(PlacementEffectRefuses, a_system_that_cannot_run_a_layout) {
    Small small;
    small.systems = load_systems({"tutel"});
    ExpertLayout& layout = small.layouts[1].layout;
    layout.on[2][0].push_back(layout.on[2][1].back());
    layout.on[2][1].pop_back();
    EXPECT_NE(small.refusal().find("layout \"round robin\", layer 2: tutel cannot run this: it "
                                   "needs as many experts on every GPU"),
              std::string::npos)
        << small.refusal();
}

TEST(PlacementEffectOfRecordedRouting, all_of_it_is_simulated) {
    const char* given = std::getenv("MOEHUB_ROUTING_DIR");
    const std::string folder =
        given != nullptr ? given : MOEHUB_SOURCE_DIR "/../shared/data/routing";
    const std::string path = folder + "/dsv2lite-law.npy";
    if (!std::filesystem::exists(path))
        GTEST_SKIP() << "no " << path << ": set MOEHUB_ROUTING_DIR to recorded routing";
    ProfileOptions read;
    read.experts = 64;
    const Profile profile = read_profile(parse_profile_source(path), read);
    const Machine machine = with_gpus(load_machine("dgx-h800"), 8);
    const Model model = load_model("deepseek-v2-lite");
    const LayoutShape shape{profile.layers, 64};
    const std::vector<NamedLayout> layouts{{"contiguous", contiguous_layout(shape, 8)},
                                           {"round robin", round_robin_layout(shape, 8)}};
    EffectOptions options;
    options.step_tokens = 512;
    options.most_steps = 1;
    const auto systems = load_systems({"megatron-te"});
    const PlacementEffect effect =
        placement_effect({machine, model, profile, layouts, systems}, options);
    ASSERT_EQ(effect.layouts[0].by_layer.size(), 26u);
    for (const Ps time : effect.layouts[0].by_layer) EXPECT_GT(time, 100 * kUs);
    EXPECT_NE(effect.layouts[0].processing.mean, effect.layouts[1].processing.mean);
    EXPECT_GT(effect.layouts[0].model, effect.layouts[0].moe_layers);
}

}  // namespace
}  // namespace moehub::placement_effect_test
