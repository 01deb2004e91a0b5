// A forward pass beside a backward one: is a pair of layers as long as it must be, and no longer?
#include "study/overlapped_passes.hpp"

#include "error_of.hpp"

#include <moehub/compare.hpp>
#include <moehub/model_time.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace moehub::overlapped_passes_test {
namespace {

constexpr double kSlower = 1.25;  // with the SMs that communication leaves

KernelTime kernels(Ps alone, double slower = 1) {
    return {alone, std::llround(static_cast<double>(alone) * slower)};
}

/// In the order of PassSteps; kernels as fast beside communication unless said otherwise.
PassSteps pass(const std::array<Ps, 6>& lengths, double slower = 1) {
    return {kernels(lengths[0], slower), lengths[1],
            kernels(lengths[2], slower), lengths[3],
            kernels(lengths[4], slower), kernels(lengths[5], slower)};
}

TEST(OverlappedPasses, compute_alone_is_its_sum) {
    const OverlappedPair pair =
        overlap({pass({300, 0, 500, 0, 0, 0}, kSlower), pass({400, 0, 500, 0, 500, 200}, kSlower)});
    EXPECT_EQ(pair.period, 2400);
    EXPECT_EQ(pair.busy, 2400);
}

TEST(OverlappedPasses, communication_alone_is_its_sum) {
    const OverlappedPair pair =
        overlap({pass({0, 700, 0, 900, 0, 0}), pass({0, 800, 0, 600, 0, 0})});
    EXPECT_EQ(pair.period, 3000);
    EXPECT_EQ(pair.busy, 0);
}

TEST(OverlappedPasses, balanced_lanes_are_full) {
    // Either way four steps of equal length in turn: while one computes, the other's rows travel.
    const PassSteps even = pass({1000, 1000, 1000, 1000, 0, 0});
    EXPECT_EQ(overlap({even, even}).period, 4000);
}

TEST(OverlappedPasses, communication_slows_kernels_by_the_sms_it_holds) {
    // Kernels without a break, under a fifth of which rows travel: in that time they do 1 / 1.25 of
    // what they would, so 1,000 of rows cost 200.
    const PassSteps way = pass({1000, 250, 1500, 250, 0, 0}, kSlower);
    const OverlappedPair pair = overlap({way, way});
    EXPECT_NEAR(static_cast<double>(pair.period), 5200, 1);
    EXPECT_EQ(pair.period, pair.busy);
}

TEST(OverlappedPasses, weights_fill_gaps) {
    // Communication is longer by just what the weights take.
    const PassSteps forward = pass({1000, 1500, 1000, 1500, 0, 0});
    const PassSteps backward = pass({1000, 1500, 1000, 1500, 1000, 1000});
    EXPECT_EQ(overlap({forward, backward}).period, 6000);
}

TEST(OverlappedPasses, a_chain_that_cannot_overlap_is_its_own_length) {
    // Nothing backward: forward steps follow one another.
    EXPECT_EQ(overlap({pass({1000, 2000, 3000, 4000, 0, 0}, kSlower), {}}).period, 10000);
}

TEST(OverlappedPasses, nothing_is_nothing) {
    EXPECT_EQ(overlap({}).period, 0);
}

TEST(OverlappedPasses, is_never_better_than_the_longer_lane_nor_worse_than_both) {
    std::mt19937 random(7);
    const auto some = [&] { return static_cast<Ps>(random() % 1'000'000); };
    for (int i = 0; i < 200; ++i) {
        const OverlappedSteps steps{
            pass({some(), some(), some(), some(), 0, 0}, kSlower),
            pass({some(), some(), some(), some(), some(), some()}, kSlower)};
        const OverlappedPair pair = overlap(steps);
        const Ps longer = std::max(steps.compute(), steps.communication());
        EXPECT_GE(pair.period, longer) << i;
        EXPECT_LE(pair.period, (steps.compute() + steps.communication()) * 101 / 100) << i;
        EXPECT_LE(pair.period, longer * 17 / 10) << i << ": most of the shorter lane is hidden";
        EXPECT_GE(pair.busy, steps.compute() - 10) << i;
        EXPECT_LE(pair.busy, pair.period) << i;
    }
}

TEST(OverlappedPasses, all_compute_is_hidden_under_long_communication) {
    const PassSteps backward = pass({300, 900, 400, 900, 400, 100}, kSlower);
    EXPECT_EQ(overlap({pass({200, 900, 400, 900, 0, 0}, kSlower), backward}).period, 3600);
    EXPECT_EQ(overlap({pass({200, 1400, 400, 900, 0, 0}, kSlower), backward}).period, 4100);
}

class DualPipe : public ::testing::Test {
  protected:
    explicit DualPipe() : model(load_model("deepseek-v2-lite")) { model.layers = 5; }
    ModelTime run(const std::string& system, const Overrides& changes = {}) const {
        ModelOptions options;
        options.training = true;
        options.eager = false;
        return simulate_models(
                   {machine, model, make_routing({}, model, 4096), contiguous_placement(64, 4)},
                   {load_system(system, changes)}, options)
            .front();
    }
    Machine machine = with_gpus(load_machine("dgx-h800"), 4);
    Model model;
};

TEST_F(DualPipe, parts_add_up) {
    const ModelTime time = run("dualpipe");
    Ps sum = 0;
    for (const LayerTypeTime& part : time.parts) sum += part.total();
    EXPECT_EQ(time.total, sum);
    ASSERT_TRUE(time.overlapped.has_value());
    // One dense layer's attention, norms and FFN, the four pairs, the head.
    ASSERT_EQ(time.parts.size(), 5u);
    EXPECT_EQ(time.parts[0].count, 1);
    EXPECT_EQ(time.parts[1].count, 1);
    EXPECT_EQ(time.parts[2].name, "attention, MoE layers");
    EXPECT_EQ(time.parts[2].count, 4);
    EXPECT_EQ(time.parts[2].total(), 4 * time.overlapped->period);
}

TEST_F(DualPipe, the_period_is_between_its_lanes_and_both) {
    const OverlappedTime pair = *run("dualpipe").overlapped;
    EXPECT_EQ(pair.host, 0);
    EXPECT_GE(pair.period, std::max(pair.busy, pair.communication));
    EXPECT_GT(pair.busy, pair.compute);  // some SMs are gone while rows travel
    EXPECT_LT(pair.period, pair.compute + pair.communication);
}

TEST_F(DualPipe, gains_over_the_same_kernels_in_a_row) {
    const ModelTime serial = run("deepep", {"communication_sms=20"});
    EXPECT_LT(run("dualpipe").total, serial.total);
    EXPECT_FALSE(serial.overlapped.has_value());
}

TEST_F(DualPipe, more_sms_for_communication_leave_fewer_for_kernels) {
    const OverlappedTime few = *run("dualpipe").overlapped;
    const OverlappedTime many = *run("dualpipe", {"communication_sms=66"}).overlapped;
    EXPECT_EQ(many.compute, few.compute);
    EXPECT_GT(many.busy, few.busy);
}

TEST_F(DualPipe, no_layer_is_refused_in_one_line) {
    const std::string why =
        "dualpipe cannot run this: it overlaps a forward with a backward pass: whole models in "
        "training (moehub model --training)";
    const LayerInput input{machine, model, make_routing({}, model, 4096),
                           contiguous_placement(64, 4)};
    const auto systems = load_systems({"dualpipe"});
    EXPECT_EQ(error_of([&] { simulate_layer(input, "dualpipe", {}); }), why);
    EXPECT_EQ(error_of([&] { compare(input, {"ideal", "dualpipe"}); }), why);
    EXPECT_EQ(error_of([&] { simulate_models(input, systems, {}); }), why);
}

TEST_F(DualPipe, only_programs_with_the_parameter_overlap) {
    EXPECT_EQ(error_of([&] { run("nvls", {"overlap_passes=true"}); }),
              "system nvls: overlap_passes is not a parameter of the program nvls, which has none");
}

}  // namespace
}  // namespace moehub::overlapped_passes_test
