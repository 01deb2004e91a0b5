// Does a training step take the memory, the bytes and the time that its layout implies?
#include "plan/step_model.hpp"

#include <moehub/plan.hpp>
#include <moehub/presets.hpp>

#include <numeric>

#include <gtest/gtest.h>

namespace moehub::plan_step_test {
namespace {

TrainingRun run_of(const std::string& model, int gpus, std::int64_t batch) {
    TrainingRun run;
    run.model = load_model(model);
    run.machine = training_machine(load_machine("h100-cluster"), gpus);
    run.trainer = load_trainer("megatron-26.04");
    run.sequence = 4096;
    run.global_batch = batch;
    return run;
}

TrainingRun dense_run() {
    TrainingRun run = run_of("llama-7b", 16, 32);
    run.sequence = 2048;
    return run;
}

TrainingStep step_of(const TrainingRun& run, const std::string& layout) {
    return TrainingClock(run).step(parse_parallel_layout(layout));
}

/// A step of dense_run(), whose communication is simulated once.
TrainingStep dense_step(const std::string& layout, std::int64_t batch = 32) {
    static const TrainingClock simulated(dense_run());
    TrainingRun run = dense_run();
    run.global_batch = batch;
    return TrainingClock(run, simulated).step(parse_parallel_layout(layout));
}

double weights_of_model(const TrainingRun& run) {
    const UnitWeights all = weights_of(run.model, {}, units_of(run));
    return all.shared + all.experts;
}

/// What w weights on d ranks take: 2w of bf16, 4w of gradients in fp32, 12w of optimizer states.
TEST(PlanMemory, is_what_zero_divides) {
    const TrainingRun run = dense_run();
    const double w = weights_of_model(run);
    EXPECT_NEAR(w, static_cast<double>(parameters(run.model)), 0.001 * w);
    struct Stage {
        const char* name;
        double weights, gradients, optimizer;
    };
    for (const Stage& one :
         {Stage{"none", 2, 4, 12}, Stage{"zero1", 2, 4, 12.0 / 16},
          Stage{"zero2", 2, 4.0 / 16, 12.0 / 16}, Stage{"fsdp", 2.0 / 16, 4.0 / 16, 12.0 / 16}}) {
        const StepMemory memory = dense_step(std::string("sharding=") + one.name).memory;
        EXPECT_NEAR(memory.weights, one.weights * w, 1) << one.name;
        EXPECT_NEAR(memory.gradients, one.gradients * w, 1) << one.name;
        EXPECT_NEAR(memory.optimizer, one.optimizer * w, 1) << one.name;
    }
}

/// Experts have data-parallel ranks of their own: fewer divide their states.
TEST(PlanMemory, of_experts_is_divided_among_their_own_ranks) {
    const TrainingRun run = run_of("mixtral-8x7b", 16, 64);
    const Model& m = run.model;
    const double experts = 3.0 * m.hidden * m.expert_ffn * m.experts * m.layers;
    const double rest = weights_of_model(run) - experts;
    const StepMemory memory = step_of(run, "ep=8").memory;
    EXPECT_NEAR(memory.weights, 2 * (rest + experts / 8), 1);
    EXPECT_NEAR(memory.optimizer, 12 * (rest / 16 + experts / 8 / 2), 1);
}

TEST(PlanMemory, each_saving_saves) {
    const TrainingRun latent = run_of("deepseek-v3", 128, 512);
    double before = 1e18;
    for (const char* recompute :
         {"none", "norms", "norms+activations", "selective", "norms+latents+experts", "full"}) {
        const double kept = activations_of(
            latent, parse_parallel_layout(std::string("recompute=") + recompute), Unit::moe);
        EXPECT_LT(kept, before) << recompute;
        before = kept;
    }
    const TrainingStep kept = dense_step("pp=4");
    const TrainingStep moved = dense_step("pp=4,offload=optimizer+activations");
    EXPECT_LT(moved.memory.activations, kept.memory.activations);
    EXPECT_EQ(moved.memory.optimizer, 0);
    EXPECT_NEAR(moved.memory.host + moved.memory.activations,
                kept.memory.optimizer + kept.memory.activations, 1);
    EXPECT_GT(moved.seconds, kept.seconds);  // states travel both ways
}

/// GPUs that share an expert hold the rows of all of them.
TEST(PlanMemory, shared_experts_keep_each_others_rows) {
    const TrainingRun run = run_of("mixtral-8x7b", 16, 64);
    const auto kept = [&](const char* layout) {
        return activations_of(run, parse_parallel_layout(layout), Unit::moe);
    };
    const double rows = 2.0 * 4096 / 4 * run.model.top_k * run.model.hidden;  // bytes in bf16
    EXPECT_NEAR(kept("tp=4,ep=4,etp=4") - kept("tp=4,ep=4"), 3 * rows, 1);
}

TEST(PlanMemory, must_fit_into_the_host_too) {
    TrainingRun run = dense_run();
    const std::string layout = "tp=2,offload=optimizer";
    const TrainingStep step = dense_step(layout);
    EXPECT_TRUE(step.fits);
    run.machine.gpu.host_capacity = static_cast<Bytes>(step.memory.host) - 1;
    EXPECT_FALSE(step_of(run, layout).fits);
}

/// A stage keeps what its warm-up lets in: p micro-batches of a p-th of the model on the first.
TEST(PlanMemory, of_activations_is_that_of_micro_batches_under_way) {
    const double layer =
        activations_of(dense_run(), parse_parallel_layout("pp=4"), Unit::dense);  // 8 a stage
    EXPECT_NEAR(dense_step("pp=4", 256).memory.activations, 4 * 8 * layer, 0.05 * 4 * 8 * layer);
    EXPECT_GT(dense_step("pp=4,vpp=2", 256).memory.activations, 4.5 * 8 * layer);
}

/// The last one is bound by its host, which overlap hides as well.
TEST(PlanStep, parts_add_up) {
    const TrainingRun run = run_of("qwen3-30b-a3b", 32, 256);
    TrainingClock clock(run);
    for (const char* layout :
         {"pp=4,ep=8", "tp=2,pp=4,vpp=2,ep=8,overlap=1f1b", "pp=4,ep=8,overlap=dualpipe",
          "tp=4,cp=2,pp=2,ep=8,offload=activations", "tp=8,ep=8,sharding=fsdp,recompute=full",
          "tp=8,pp=4,ep=8,overlap=1f1b"}) {
        const TrainingStep step = clock.step(parse_parallel_layout(layout));
        EXPECT_NEAR(step.parts.sum(), step.seconds, 1e-6 * step.seconds) << layout;
        for (const double part : {step.parts.tp, step.parts.cp, step.parts.ep, step.parts.pp,
                                  step.parts.dp, step.parts.bubble, step.parts.host})
            EXPECT_GE(part, 0) << layout;
    }
}

TEST(PlanStep, compute_is_no_faster_than_the_peak) {
    for (const char* model : {"llama-7b", "mixtral-8x7b", "qwen3-30b-a3b"}) {
        TrainingRun run = run_of(model, 16, 64);
        TrainingClock bf16(run);
        run.precision = NumberFormat::fp8;
        TrainingClock fp8(run, bf16);
        for (const auto& [clock, most] : {std::pair(&bf16, 0.83), std::pair(&fp8, 1.6)}) {
            const TrainingStep step = clock->step(parse_parallel_layout("tp=2,pp=2"));
            EXPECT_GT(step.mfu, 0.05) << model;
            EXPECT_LT(step.mfu, most) << model;
        }
    }
}

#ifndef MOEHUB_SANITIZED  // dozens of simulated layers; other tests run fewer
TEST(PlanStep, more_bandwidth_is_never_slower) {
    const std::vector<std::string> layouts{"tp=4,ep=4", "tp=2,pp=4,ep=8", "tp=8,sharding=fsdp",
                                           "cp=2,pp=2,ep=8", "pp=2,ep=8,overlap=1f1b"};
    std::vector<double> before(layouts.size(), 1e9);
    for (const double times : {1.0, 2.0}) {
        TrainingRun run = run_of("mixtral-8x7b", 32, 64);
        for (LinkSpec* wire : {&run.machine.link, &run.machine.nic})
            wire->bandwidth = wire->bandwidth * times;
        TrainingClock clock(run);
        for (std::size_t i = 0; i < layouts.size(); ++i) {
            const double seconds = clock.step(parse_parallel_layout(layouts[i])).seconds;
            EXPECT_LE(seconds, before[i] * 1.001) << layouts[i] << " " << times;
            before[i] = seconds;
        }
    }
}
#endif

/// What new hardware would change is a choice of the layout.
TEST(PlanStep, moe_hub_shows_less_of_the_exchange) {
    TrainingRun run = run_of("mixtral-8x7b", 8, 32);
    TrainingClock clock(run);
    const auto exposed = [&](const std::string& system) {
        return clock.step(parse_parallel_layout("ep=8,system=" + system)).parts.ep;
    };
    const double today = exposed("all-to-all");
    EXPECT_GT(today, 0);
    EXPECT_LT(exposed("moe-hub"), 0.6 * today);
}

#ifndef MOEHUB_SANITIZED  // a layer of 8 GPUs, twice
TEST(PlanStep, uneven_experts_cost_what_the_fullest_has_more) {
    TrainingRun run = run_of("qwen3-30b-a3b", 8, 32);
    const TrainingStep even = step_of(run, "ep=8");
    run.routing = parse_routing("lognormal:0.4");
    const TrainingStep uneven = step_of(run, "ep=8");
    EXPECT_EQ(even.parts.imbalance, 0);
    EXPECT_GT(uneven.parts.imbalance, 0.1 * uneven.parts.experts);
    EXPECT_LT(uneven.parts.imbalance, uneven.parts.experts);
}
#endif

/// Stages with the embedding, the head, multi-token prediction and dense layers differ; the cut
/// keeps the longest piece short and leaves none empty.
TEST(PlanCut, makes_the_longest_piece_short) {
    const UnitCounts all{1, 3, 58, 1, 1};
    const std::array<double, kUnits> seconds{0.1, 0.8, 1, 1.1, 1.8};
    const std::vector<UnitCounts> pieces = cut(all, 32, seconds);
    ASSERT_EQ(pieces.size(), 32u);
    UnitCounts sum{};
    for (const UnitCounts& piece : pieces) {
        EXPECT_GT(std::accumulate(piece.begin(), piece.end(), 0), 0);
        EXPECT_LE(std::inner_product(piece.begin(), piece.end(), seconds.begin(), 0.0), 2.1 + 1e-9);
        for (std::size_t u = 0; u < kUnits; ++u) sum[u] += piece[u];
    }
    EXPECT_EQ(sum, all);
    EXPECT_EQ(count_of(pieces.back(), Unit::head), 1);
}

}  // namespace
}  // namespace moehub::plan_step_test
