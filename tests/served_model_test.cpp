// A served model: what its steps are made of, how halves overlap, what fits.
#include "study/serving/served_parts.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <numeric>

#include <gtest/gtest.h>

namespace moehub::served_model_test {
namespace {

Serving decoding(const std::string& machine, int gpus, const std::string& model = "deepseek-v3") {
    Serving serving = serving_on(with_gpus(load_machine(machine), gpus), load_model(model),
                                 load_engine("sglang"));
    serving.context = 2000;
    serving.batch_per_gpu = 16;
    return serving;
}

ServedStep one(const Serving& serving, const std::string& system = "deepep-ll") {
    return serve(serving, {load_system(system)}).front();
}

double sum_of(const ServedStep& step) {
    return std::accumulate(step.operators.begin(), step.operators.end(), 0.0,
                           [](double sum, const StepOperator& op) { return sum + op.total(); });
}

TEST(ServedModel, a_step_is_its_operators_less_what_overlaps) {
    Serving serving = decoding("dgx-h200", 8);
    for (const BatchOverlap overlap :
         {BatchOverlap::none, BatchOverlap::single_batch, BatchOverlap::two_batch}) {
        serving.overlap = overlap;
        const ServedStep step = one(serving);
        EXPECT_NEAR(sum_of(step) - step.hidden, step.seconds, 1e-9) << name_of(overlap);
        EXPECT_NEAR(step.tokens_per_second, 16 / step.seconds, 1e-6);
    }
}

TEST(ServedModel, more_requests_never_give_fewer_tokens) {
    const std::vector<ServedPoint> points = serve_sizes(
        {decoding("dgx-h200", 8)}, {1, 2, 4, 8, 16, 32, 64, 128}, load_system("deepep-ll"));
    for (std::size_t i = 1; i < points.size(); ++i) {
        ASSERT_TRUE(points[i].step) << points[i].why_not;
        EXPECT_GE(points[i].step->tokens_per_second, points[i - 1].step->tokens_per_second);
        EXPECT_GE(points[i].step->seconds, points[i - 1].step->seconds);
        EXPECT_TRUE(points[i].best);
    }
}

TEST(ServedModel, one_gpu_has_nothing_to_exchange) {
    const Serving serving = decoding("dgx-h200", 1, "qwen3-30b-a3b");
    const ServedStep step = serve_by_engine(serving);
    const ServingStep card = step_time(serving.what, {.requests = 16, .context = 2000});
    EXPECT_DOUBLE_EQ(step.seconds, card.seconds);
    EXPECT_EQ(part_seconds(step, "dispatch") + part_seconds(step, "combine"), 0);
}

TEST(ServedModel, all_but_the_moe_layer_is_the_same_under_every_system) {
    const Serving serving = decoding("dgx-h200", 8);
    const ServedStep a = one(serving, "deepep-ll");
    const ServedStep b = one(serving, "moe-hub");
    for (const std::string_view part : {"attention core", "GEMM (dense)", "head and sampling"})
        EXPECT_DOUBLE_EQ(part_seconds(a, part), part_seconds(b, part)) << part;
    EXPECT_LT(b.seconds, a.seconds);
}

TEST(ServedModel, empty_slots_hold_copies) {
    const Serving serving = decoding("gb200-nvl72", 72);
    std::size_t slots = 0;
    for (const std::vector<int>& experts : experts_by_rank(serving.placement))
        slots += experts.size();
    EXPECT_GE(slots, 285u);  // 288 slots; two copies may meet on a GPU
    EXPECT_LE(slots, 288u);
}

TEST(ServedModel, the_batch_that_is_found_is_the_largest) {
    Serving serving = decoding("dgx-h200", 8);
    const double limit = 0.025;
    const SystemSpec system = load_system("deepep-ll");
    const ServedPoint found = find_batch(serving, system, limit);
    ASSERT_TRUE(found.step) << found.why_not;
    EXPECT_LE(found.step->tpot, limit);
    serving.batch_per_gpu = found.batch_per_gpu + 1;
    EXPECT_GT(one(serving).tpot, limit);
    EXPECT_FALSE(find_batch(serving, system, 1e-4).step);
}

TEST(ServedModel, what_does_not_fit_says_what_would) {
    Serving serving = decoding("dgx-h100", 8);
    try {
        check(serving);
        FAIL();
    } catch (const InputError& error) {
        EXPECT_EQ(std::string(error.what()).find("deepseek-v3 does not fit: weights take"), 0u)
            << error.what();
    }
    serving = decoding("dgx-h200", 8);
    const std::int64_t most = most_batch_per_gpu(serving);
    serving.batch_per_gpu = most;
    EXPECT_NO_THROW(check(serving));
    serving.batch_per_gpu = most + 1;
    EXPECT_THROW(check(serving), InputError);
}

TEST(ServedModel, many_tokens_are_extended_from_fewer) {
    Serving serving = decoding("dgx-h200", 8, "deepseek-v2-lite");
    const SystemSpec system = served_system(load_system("deepep-ll"), serving.what.formats);
    const MoeTimes half = moe_times(serving, system, 1024);
    const MoeTimes whole = moe_times(serving, system, 2048);
    const MoeTimes more = moe_times(serving, system, 3072);
    EXPECT_NEAR(more.dispatch, 2 * whole.dispatch - half.dispatch, 1e-12);
    EXPECT_NEAR(more.experts, 2 * whole.experts - half.experts, 1e-12);
}

/// Half of a layer's batch, by its microseconds: what is not the MoE layer, dispatch, combine,
/// experts.
HalfLayer half_layer(double rest, double dispatch, double combine, double experts) {
    HalfLayer half;
    half.rest = half.rest_beside = rest * 1e-6;
    half.moe.dispatch = dispatch * 1e-6;
    half.moe.combine = combine * 1e-6;
    half.moe.experts = half.experts_beside = experts * 1e-6;
    return half;
}

// Steps of 100 µs and 30 µs, rows underway for 10 and 20 µs: kernels never wait.
TEST(TwoBatches, kernels_hide_rows_that_take_less) {
    HalfLayer half = half_layer(100, 10, 20, 30);
    EXPECT_NEAR(two_batch_period(half), 2 * 130e-6, 1e-9);
    half.moe.dispatch_work = 4e-6;
    EXPECT_NEAR(two_batch_period(half), 2 * 134e-6, 1e-9);
}

TEST(TwoBatches, rows_hide_kernels_that_take_less) {
    EXPECT_NEAR(two_batch_period(half_layer(10, 100, 80, 20)), 2 * 180e-6, 1e-9);
}

TEST(TwoBatches, need_kernels_that_let_others_run) {
    Serving serving = decoding("dgx-h200", 8);
    serving.overlap = BatchOverlap::two_batch;
    EXPECT_THROW(one(serving, "moe-hub"), InputError);
    serving.batch_per_gpu = 1;
    EXPECT_THROW(one(serving), InputError);
}

}  // namespace
}  // namespace moehub::served_model_test
