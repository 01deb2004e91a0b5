// Does the search of parallel layouts find what timing every one of them finds, does it keep to
// what is fixed, and do its bounds hold?
#include "asking.hpp"
#include "error_of.hpp"
#include "plan/search/search.hpp"

#include <moehub/plan.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub::plan_search_test {
namespace {

TrainingRun run_of(const std::string& model, const std::string& machine, int gpus, int batch) {
    TrainingRun run;
    run.model = load_model(model);
    run.machine = training_machine(load_machine(machine), gpus);
    run.trainer = load_trainer("megatron-26.04");
    run.sequence = 4096;
    run.global_batch = batch;
    return run;
}

const PartialLayout kNarrow{.etp = 1, .micro_batch = 1};

/// A few layers and short sequences on one node with little memory.
TrainingRun short_run_of(const std::string& model, int layers) {
    TrainingRun run = run_of(model, "dgx-h100", 8, 32);
    run.model.layers = layers;
    run.sequence = 1024;
    run.machine.gpu.hbm_capacity = Bytes{16'000'000'000};
    return run;
}

/// Narrow layers of Mixtral.
TrainingRun small_run() {
    TrainingRun run = short_run_of("mixtral-8x7b", 8);
    run.model.hidden = 1024;
    return run;
}

/// Latent attention, dense layers first, multi-token prediction.
TrainingRun latent_run() {
    TrainingRun run = short_run_of("deepseek-v2-lite", 9);
    run.model.mtp_layers = 1;
    return run;
}

std::vector<std::string> texts_of(const std::vector<TrainingStep>& steps) {
    std::vector<std::string> texts;
    for (const TrainingStep& step : steps) texts.push_back(to_text(step.layout));
    return texts;
}

void expect_as_brute_force(const TrainingRun& run, PlanOptions options) {
    options.exact = false;
    const Plan pruned = plan_training(run, options);
    options.prune = false;
    const Plan all = plan_training(run, options);
    EXPECT_EQ(pruned.layouts + pruned.refused, all.layouts + all.refused);
    EXPECT_EQ(all.timed, all.layouts);
    EXPECT_LT(pruned.timed, all.timed);
    EXPECT_GT(all.too_large, 0u);
    ASSERT_FALSE(all.best.empty());
    EXPECT_EQ(texts_of(pruned.best), texts_of(all.best));
    EXPECT_EQ(texts_of(pruned.front), texts_of(all.front));
    EXPECT_EQ(texts_of(pruned.systems), texts_of(all.systems));
    for (std::size_t i = 0; i < all.best.size(); ++i) {
        EXPECT_TRUE(all.best[i].fits);
        EXPECT_EQ(pruned.best[i].seconds, all.best[i].seconds);
    }
}

TEST(PlanSearch, finds_what_timing_all_finds) {
    expect_as_brute_force(small_run(),
                          {.fixed = {.micro_batch = 1}, .systems = {"deepep", "all-to-all"}});
    expect_as_brute_force(latent_run(), {.fixed = parse_partial_layout("sharding=zero1", kNarrow)});
    TrainingRun dense = run_of("llama-7b", "dgx-h100", 8, 32);
    dense.sequence = 2048;
    expect_as_brute_force(dense, {});
}

TEST(PlanSearch, same_on_any_number_of_threads) {
    const PartialLayout fixed = parse_partial_layout("sharding=zero1", kNarrow);
    const Plan one = plan_training(small_run(), {.fixed = fixed, .exact = false, .threads = 1});
    const Plan four = plan_training(small_run(), {.fixed = fixed, .exact = false, .threads = 4});
    EXPECT_EQ(texts_of(one.best), texts_of(four.best));
    EXPECT_EQ(texts_of(one.front), texts_of(four.front));
    EXPECT_EQ(one.timed, four.timed);
    EXPECT_EQ(one.too_large, four.too_large);
}

TEST(PlanSearch, lists_in_order) {
    const Plan plan = plan_training(small_run(), {.fixed = kNarrow, .top = 5});
    ASSERT_EQ(plan.best.size(), 5u);
    for (std::size_t i = 0; i < plan.best.size(); ++i) {
        EXPECT_FALSE(plan.best[i].stages.empty()) << "simulated exactly";
        if (i > 0) {
            EXPECT_LE(plan.best[i - 1].seconds, plan.best[i].seconds);
        }
    }
    EXPECT_EQ(plan.front.front().seconds, plan.best.front().seconds);
    for (std::size_t i = 1; i < plan.front.size(); ++i) {
        EXPECT_LT(plan.front[i - 1].seconds, plan.front[i].seconds);
        EXPECT_GT(plan.front[i - 1].memory.sum(), plan.front[i].memory.sum());
    }
}

/// Layouts of one family differ in recomputation and offload alone: one of each is enough.
TEST(PlanSearch, lists_each_family_once) {
    const Plan plan = plan_training(small_run(), {.fixed = kNarrow, .top = 30, .exact = false});
    std::vector<ParallelLayout> families;
    for (const TrainingStep& step : plan.best) {
        ParallelLayout family = step.layout;
        family.recompute = {};
        family.offload = {};
        EXPECT_EQ(std::count(families.begin(), families.end(), family), 0) << to_text(family);
        families.push_back(family);
    }
}

#ifndef MOEHUB_SANITIZED  // dozens of simulated layers; other tests run fewer
TEST(PlanSearch, more_memory_never_fewer_layouts) {
    TrainingRun run = small_run();
    std::size_t before = 0;
    double seconds = 1e9;
    for (const Bytes capacity : {6, 16, 80}) {
        run.machine.gpu.hbm_capacity = capacity * 1'000'000'000;
        const Plan plan =
            plan_training(run, {.fixed = parse_partial_layout("sharding=zero1", kNarrow),
                                .exact = false,
                                .prune = false});
        EXPECT_GE(plan.layouts - plan.too_large, before) << capacity;
        before = plan.layouts - plan.too_large;
        if (plan.best.empty()) continue;
        EXPECT_LE(plan.best.front().seconds, seconds) << capacity;
        seconds = plan.best.front().seconds;
    }
    EXPECT_GT(before, 0u);
}
#endif

TEST(PlanSearch, keeps_what_is_fixed) {
    const PartialLayout fixed =
        parse_partial_layout("tp=2,pp=2,ep=4,mb=2,sharding=zero2,recompute=norms,offload=none");
    const Plan plan = plan_training(small_run(), {.fixed = fixed, .exact = false});
    ASSERT_FALSE(plan.best.empty());
    for (const TrainingStep& step : plan.best)
        EXPECT_EQ(to_text(completed(fixed, step.layout)), to_text(step.layout));
}

TEST(PlanSearch, takes_fixed_values_that_it_would_not_try) {
    TrainingRun run = small_run();
    run.machine.gpu.hbm_capacity = Bytes{80'000'000'000};
    run.global_batch = 24;  // micro-batches of 3 are none of 1, 2, 4, 8
    const Plan plan =
        plan_training(run, {.fixed = {.tp = 1, .ep = 8, .micro_batch = 3}, .exact = false});
    ASSERT_FALSE(plan.best.empty());
    EXPECT_EQ(plan.best.front().layout.micro_batch, 3);
    const Plan recomputed = plan_training(
        run, {.fixed = parse_partial_layout("recompute=attention,tp=1,mb=1,ep=8"), .exact = false});
    EXPECT_TRUE(recomputed.best.front().layout.recompute.attention);
}

TEST(PlanSearch, says_why_no_layout_is_left) {
    const auto refused = [](const std::string& fixed) {
        return error_of(
            [&] { plan_training(small_run(), {.fixed = parse_partial_layout(fixed)}); });
    };
    EXPECT_EQ(refused("tp=3"), "tp·cp·pp = 3 does not divide 8 GPUs");
    for (const char* fixed : {"pp=16", "ep=3", "mb=64", "vpp=2,pp=1", "sharding=fsdp,pp=2", "tpp=2",
                              "system=deepep,etp=2,ep=2"})  // deepep keeps experts whole
        EXPECT_NE(refused(fixed), "accepted") << fixed;
}

/// Each rule at its border: what just comes out, and what just does not.
TEST(PlanSearch, refuses_what_does_not_come_out_and_nothing_else) {
    TrainingRun run = run_of("mixtral-8x7b", "h100-cluster", 32, 64);
    const auto why = [&](const std::string& layout) {
        return why_not(run, parse_parallel_layout(layout));
    };
    for (const char* allowed :
         {"tp=8,cp=4", "pp=32", "ep=8,pp=4", "ep=8,etp=4", "pp=2,vpp=17", "mb=2", "pp=4,vpp=2",
          "pp=4,ep=2,overlap=dualpipe", "sharding=fsdp,tp=2", "ep=2,overlap=1f1b,recompute=norms",
          "etp=2,overlap=1f1b", "recompute=selective"})
        EXPECT_EQ(why(allowed), "") << allowed;
    const std::vector<std::pair<std::string, std::string>> refused = {
        {"tp=8,cp=8", "tp·cp·pp = 64 is more than 32 GPUs: take smaller ones or more GPUs"},
        {"cp=3", "tp·cp·pp = 3 does not divide 32 GPUs"},
        {"ep=8,etp=8", "ep·etp·pp = 64 is more than 32 GPUs: take smaller ones or more GPUs"},
        {"etp=3", "ep·etp·pp = 3 does not divide 32 GPUs"},
        {"tp=16", "tp = 16 does not divide the 8 GPUs of a node; allowed: 1, 2, 4, 8"},
        {"pp=2,vpp=18",
         "pp·vpp = 36 is more than the 34 parts there are: 32 layers, embedding, head"},
        {"mb=3",
         "a global batch of 64 does not divide into micro-batches of 3 on 32 data-parallel "
         "ranks: take a multiple of 96, or smaller micro-batches"},
        {"vpp=2", "vpp needs more than one pipeline stage"},
        {"pp=4,vpp=2,mb=4", "vpp needs a number of micro-batches that pp = 4 divides, there are 2"},
        {"ep=2,overlap=dualpipe", "dualpipe needs an even number of stages, pp is 1"},
        {"pp=4,vpp=2,ep=2,overlap=dualpipe",
         "dualpipe has one piece a stage and direction: vpp is 1"},
        {"pp=4,ep=2,mb=2,overlap=dualpipe",
         "dualpipe needs an even number of micro-batches, at least 8, there are 4"},
        {"sharding=fsdp,pp=2",
         "fsdp gathers weights for every micro-batch and has no pipeline: take pp=1"},
        {"overlap=1f1b", "overlap 1f1b hides the exchange of rows: ep is more than 1"},
        {"ep=2,overlap=1f1b,recompute=experts",
         "overlap 1f1b cannot compute experts again: recompute less"},
        {"ep=2,overlap=1f1b,recompute=full",
         "overlap 1f1b cannot compute experts again: recompute less"},
        {"recompute=latents", "recompute latents is for latent attention"}};
    for (const auto& [layout, words] : refused) EXPECT_EQ(why(layout), words) << layout;

    run.global_batch = 72;
    EXPECT_EQ(why("pp=4,ep=2,overlap=dualpipe"),
              "dualpipe needs an even number of micro-batches, at least 8, there are 9");
    run.model.experts = 12;
    run.model.attention.heads = 12;
    EXPECT_EQ(why("ep=8,pp=4"), "ep = 8 does not divide 12 experts; allowed: 1, 2, 3, 4, 6, 12");
    EXPECT_EQ(why("tp=8"), "tp = 8 does not divide 12 heads; allowed: 1, 2, 3, 4, 6, 12");
    run.model.mtp_layers = 1;
    for (const bool mtp : {true, false}) {
        run.mtp = mtp;
        EXPECT_EQ(why("pp=4,vpp=9,mb=3"),
                  fmt::format("pp·vpp = 36 is more than the {} parts there are: 32 layers, "
                              "embedding, head{}",
                              mtp ? 35 : 34, mtp ? " and multi-token prediction" : ""));
    }
    run.model.experts = 0;
    EXPECT_EQ(why("ep=2"), "ep and etp are 1 in a model without experts");
    EXPECT_EQ(why("etp=2"), "ep and etp are 1 in a model without experts");

    TrainingRun three = run_of("mixtral-8x7b", "h100-cluster", 24, 48);
    const auto why_three = [&](const std::string& layout) {
        return why_not(three, parse_parallel_layout(layout));
    };
    EXPECT_EQ(why_three("ep=8"), "");
    for (const auto& [layout, group] :
         {std::pair{"ep=6", 6}, std::pair{"ep=4,etp=3", 12}, std::pair{"ep=3", 3}})
        EXPECT_EQ(why_three(layout),
                  fmt::format("ep·etp = {} is neither a divisor nor a multiple of the 8 GPUs of a "
                              "node",
                              group));
    EXPECT_EQ(why_three("ep=8,etp=3"), "etp = 3 does not divide the experts' width of 14336");
    EXPECT_EQ(why_three("pp=3,ep=2,overlap=dualpipe"),
              "dualpipe needs an even number of stages, pp is 3");
    // A run's own sequence, and without one the model's.
    EXPECT_EQ(why_three("cp=3"), "tp·cp = 3 does not divide sequences of 4096 tokens");
    three.sequence = 0;
    EXPECT_EQ(why_three("cp=3"), "tp·cp = 3 does not divide sequences of 4096 tokens");
    three.model.sequence = 4098;
    EXPECT_EQ(why_three("cp=3"), "");
    three.sequence = 1;
    EXPECT_EQ(why_three("cp=3"), "tp·cp = 3 does not divide sequences of 1 tokens");
}

#ifndef MOEHUB_SANITIZED  // dozens of simulated layers; other tests run fewer
TEST(PlanSearch, lists_the_nearest_when_nothing_fits) {
    TrainingRun run = run_of("mixtral-8x22b", "h100-cluster", 8, 16);
    run.sequence = 1024;
    const PlanOptions options{.fixed = kNarrow, .top = 3, .exact = false};
    const Plan plan = plan_training(run, options);
    EXPECT_TRUE(plan.best.empty());
    EXPECT_TRUE(plan.front.empty());
    EXPECT_EQ(plan.too_large, plan.layouts);
    ASSERT_EQ(plan.nearest.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_FALSE(plan.nearest[i].fits);
        if (i > 0) {
            EXPECT_LE(plan.nearest[i - 1].memory.sum(), plan.nearest[i].memory.sum());
        }
    }
    const std::string remedy = what_would_fit(run, options, load_machine("h100-cluster"));
    EXPECT_TRUE(remedy.starts_with("16 GPUs would do: ")) << remedy;
}
#endif

TEST(PlanSearch, says_what_would_fit_without_fixed_keys) {
    const TrainingRun run = run_of("mixtral-8x7b", "dgx-h100", 8, 16);
    const PlanOptions options{.fixed = parse_partial_layout("ep=1,etp=1,tp=1,pp=1,sharding=none"),
                              .exact = false};
    ASSERT_TRUE(plan_training(run, options).best.empty());
    const std::string remedy = what_would_fit(run, options, run.machine);
    EXPECT_TRUE(remedy.starts_with("without " + to_text(options.fixed) + " it would: ")) << remedy;
}

TEST(PlanSearch, has_the_best_of_each_system) {
    const std::vector<std::string> systems{"all-to-all", "deepep"};
    const Plan plan = plan_training(
        small_run(), {.fixed = {.ep = 8, .micro_batch = 1}, .systems = systems, .top = 2});
    ASSERT_EQ(plan.systems.size(), 2u);
    EXPECT_EQ(plan.systems[0].layout.system, "all-to-all");
    EXPECT_EQ(plan.systems[1].layout.system, "deepep");
}

/// All members of some families.
TEST(PlanSearch, bounds_hold) {
    for (const TrainingRun& run : {small_run(), latent_run()}) {
        const PlanOptions options;
        const std::vector<ParallelLayout> families = layout_families(run, options);
        const std::vector<Saving> all = savings(run, options.fixed);
        TrainingClock clock(run);
        std::size_t compared = 0;
        for (std::size_t f = 0; f < families.size(); f += 211) {
            double first = 0;
            for (const Saving& saving : all) {
                ParallelLayout layout = families[f];
                layout.recompute = saving.recompute;
                layout.offload = saving.offload;
                if (layout.etp > 1 || !why_not(run, layout).empty()) continue;
                const TrainingStep step = clock.step(layout);
                const double least = clock.least_seconds(layout);
                EXPECT_LE(least_memory(run, layout), step.memory.sum() * (1 + 1e-12))
                    << to_text(layout);
                EXPECT_LE(least, step.seconds * (1 + 1e-3)) << to_text(layout);
                EXPECT_GT(least, 0.3 * step.seconds) << to_text(layout);
                if (first == 0) first = least;
                EXPECT_GE(least, first) << to_text(layout);
                ++compared;
            }
        }
        EXPECT_GT(compared, 100u);
    }
}

TEST(PlanSearch, enumerates_what_is_allowed) {
    const TrainingRun run = latent_run();
    std::size_t refused = 0;
    const std::vector<ParallelLayout> families = layout_families(run, {});
    for (const ParallelLayout& family : families) refused += why_not(run, family).empty() ? 0 : 1;
    EXPECT_LT(refused, families.size() / 10);
}

TEST(PlanSearch, rank_correlation_is_spearmans) {
    EXPECT_EQ(rank_correlation({1, 2, 3}, {10, 20, 30}), 1);
    EXPECT_EQ(rank_correlation({1, 2, 3}, {3, 2, 1}), -1);
    EXPECT_NEAR(rank_correlation({1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}), 0.8, 1e-12);  // 1 − 6·4/120
    EXPECT_NEAR(rank_correlation({1, 2, 2, 4}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
    EXPECT_EQ(rank_correlation({1, 1, 1}, {1, 2, 3}), 0);
    EXPECT_EQ(rank_correlation({1}, {1}), 0);
    EXPECT_EQ(rank_correlation({}, {}), 0);
    EXPECT_NE(error_of([] { rank_correlation({1, 2}, {1}); }), "accepted");
}

TEST(PlanSearch, progress_never_goes_back_and_comes_to_its_end) {
    std::vector<double> shares;
    PlanOptions options{.fixed = kNarrow, .top = 3, .threads = 2};
    options.progress = [&](std::size_t done, std::size_t all) {
        shares.push_back(static_cast<double>(done) / static_cast<double>(all));
    };
    plan_training(small_run(), options);
    ASSERT_GT(shares.size(), 10u);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_EQ(shares.back(), 1);
}

/// Whatever a plan is asked for, it ends in the middle when its asker wants that.
TEST(PlanSearch, ends_when_its_asker_wants_to) {
    const Question question = question_named("plan");
    Said said{{"model", {"mixtral-8x7b"}},
              {"machine", {"dgx-h100"}},
              {"gpus", {"8"}},
              {"sequence", {"1024"}},
              {"global_batch", {"32"}},
              {"set", {"model.layers=8", "model.hidden=1024"}}};
    const std::string axes = ::testing::TempDir() + "moehub-axes.toml";
    std::ofstream(axes) << "layers = '6..10'\nhidden = '1024, 2048'\n";
    for (const bool shapes : {false, true}) {
        if (shapes) {
            said.push_back({"shapes", {axes}});
            said.push_back({"search_model", {"true"}});
            said.push_back({"params", {"14e9±80%"}});
            said.push_back({"active", {"4e9±90%"}});
        }
        const Asked asked = question.ask();
        fill(asked.options, said);
        std::stop_source stop;
        std::size_t calls = 0;
        Asker asker;
        asker.said = said;
        asker.options = asked.options;
        asker.form_words = question.form_words;
        asker.stop = stop.get_token();
        asker.progress = [&](std::string_view, const Work&) {
            if (++calls == 3) stop.request_stop();
        };
        EXPECT_THROW(asked.answer(asker), Ended) << shapes;
        EXPECT_EQ(calls, 3u);
    }
}

}  // namespace
}  // namespace moehub::plan_search_test
