// Do thread blocks on SM slots take the time that the plans predict?
#include "sim/gpu/card.hpp"
#include "sim/gpu/gemm.hpp"
#include "traffic.hpp"

#include <moehub/presets.hpp>

#include <gtest/gtest.h>

namespace moehub::sim::execute_test {
namespace {

class Execute : public ::testing::Test {
  protected:
    Gpu gpu_ = load_gpu("h200-sxm");
    Fabric fabric_{testing::small_machine(2), {}};
    Card card_{fabric_.gpu(0), gpu_};
    Ps end_ = 0;

    Process note_end(Process process) {
        co_await process;
        end_ = std::max(end_, fabric_.gpu(0).now());
    }
    double run(std::vector<Process> processes) {
        for (Process& process : processes) {
            fabric_.gpu(0).spawn("kernel", note_end(std::move(process)));
        }
        fabric_.run();
        return to_seconds(end_);
    }
    Process release_at(Ps when) {
        co_await fabric_.gpu(0).delay(when);
        card_.blocks.release(gpu_.sms, KernelName::other);
    }
    template <class... Processes>
    double run_all(Processes... processes) {
        std::vector<Process> list;
        (list.push_back(std::move(processes)), ...);
        return run(std::move(list));
    }
};

TEST_F(Execute, a_gemm_alone_takes_what_its_plan_predicts) {
    for (const GemmShape& shape :
         {GemmShape{4096, 7168, 4096}, GemmShape{128, 4096, 14336}, GemmShape{2048, 2048, 1536}}) {
        const GemmPlan plan = plan_gemm(gpu_, shape);
        Fabric fabric(testing::small_machine(2), {});
        Card card(fabric.gpu(0), gpu_);
        fabric.gpu(0).spawn("gemm", run_gemm(card, plan));
        fabric.run();
        const double predicted = plan.start + tiles_seconds(gpu_, plan) + plan.finish;
        EXPECT_NEAR(to_seconds(fabric.gpu(0).now()) / predicted, 1.0, 0.02);
    }
}

TEST_F(Execute, a_grouped_gemm_alone_takes_about_what_its_plan_predicts) {
    const GemmPlan plan =
        plan_grouped_gemm(gpu_, {{300, 10, 0, 1700, 64, 900, 128, 2000}, 4096, 2048});
    const double predicted = plan.start + tiles_seconds(gpu_, plan) + plan.finish;
    EXPECT_NEAR(run_all(run_gemm(card_, plan)) / predicted, 1.0, 0.10);
}

TEST_F(Execute, a_memory_bound_kernel_alone_takes_its_bytes_over_the_bandwidth) {
    const Traffic traffic{1e9, 1e9};
    EXPECT_NEAR(run_all(run_stream(card_, traffic)) / stream_seconds(gpu_, traffic), 1.0, 1e-3);
}

TEST_F(Execute, a_kernel_alone_takes_what_is_predicted_however_it_reads) {
    for (const Traffic& traffic :
         {sum_traffic(65536, 8, 14336), eager_activation_traffic(gpu_, 1e8),
          activation_traffic(1e6), norm_traffic(gpu_, 65536, 7168, Norm::layer),
          quantise_rows_traffic(65536, 7168)}) {
        Fabric fabric(testing::small_machine(2), {});
        Card card(fabric.gpu(0), gpu_);
        fabric.gpu(0).spawn("kernel", run_stream(card, traffic));
        fabric.run();
        EXPECT_NEAR(to_seconds(fabric.gpu(0).now()) / stream_seconds(gpu_, traffic), 1.0, 1e-3);
    }
}

TEST_F(Execute, a_kernel_that_its_sms_limit_leaves_the_rest_of_hbm_to_others) {
    const Traffic plain = eager_activation_traffic(gpu_, 1e8);
    const double seconds = run_all(run_stream(card_, plain));
    const double bytes = plain.read + plain.written;
    const double kernels = gpu_.kernels.hbm_efficiency / gpu_.kernels.hbm_copy;
    EXPECT_NEAR(card_.hbm.drawn() / (bytes * kernels), 1, 1e-6);
    EXPECT_LT(card_.hbm.drawn(), 0.5 * seconds * gpu_.hbm_bandwidth);
}

TEST_F(Execute, a_kernel_that_waits_for_sms_does_not_compute) {
    const Traffic traffic{1e9, 1e9};
    constexpr Ps kHeld = 5000 * kUs;
    card_.blocks.hold(gpu_.sms, KernelName::other);
    fabric_.gpu(0).spawn("held", release_at(kHeld));
    const double seconds = run_all(run_stream(card_, traffic));
    EXPECT_NEAR(seconds, to_seconds(kHeld) + stream_seconds(gpu_, traffic), 3e-6);
    EXPECT_NEAR(to_seconds(card_.activity.computed()) / stream_seconds(gpu_, traffic), 1, 1e-3);
}

TEST_F(Execute, a_kernel_beside_held_sms_takes_longer_by_what_they_would_do) {
    const Traffic plain = eager_activation_traffic(gpu_, 1e8);
    card_.blocks.hold(gpu_.sms / 4, KernelName::other);
    EXPECT_NEAR(run_all(run_stream(card_, plain)) / stream_seconds(gpu_, plain), 4 / 3.0, 0.2);
}

TEST_F(Execute, two_memory_bound_kernels_share_the_card) {
    const Traffic traffic{1e9, 1e9};
    const double start = to_seconds(gpu_.kernels.stream_start);
    const double alone = stream_seconds(gpu_, traffic) - start;
    EXPECT_NEAR(run_all(run_stream(card_, traffic), run_stream(card_, traffic)), start + 2 * alone,
                1e-3 * alone);
}

TEST_F(Execute, kernels_that_need_pairs_of_sms_do_not_lock_each_other_out) {
    const GemmPlan plan = plan_grouped_gemm(gpu_, {{300, 10, 0, 1700}, 4096, 2048});
    run_all(run_gemm(card_, plan), run_gemm(card_, plan), run_gemm(card_, plan));
    EXPECT_EQ(card_.blocks.free(), gpu_.sms);
}

TEST_F(Execute, gradients_of_the_weights_take_their_products_and_their_stores) {
    const GroupedShape shape{{500, 500, 0, 500}, 4096, 2048};
    const GemmPlan plan = plan_grouped_gradient(gpu_, shape);
    EXPECT_EQ(plan.tiles(), 4 * 16 * 8) << "experts without rows have gradients, too";
    const double written = 4 * 2.0 * 4096 * 2048;
    const double products = 2.0 * 1500 * 4096 * 2048;
    const double least = products / (gpu_.kernels.tensor_efficiency * gpu_.bf16_flops) +
                         written / (gpu_.kernels.hbm_narrow * gpu_.hbm_bandwidth);
    EXPECT_GT(tiles_seconds(gpu_, plan), least);
    EXPECT_LT(tiles_seconds(gpu_, plan), 1.5 * least);
    const double predicted = plan.start + tiles_seconds(gpu_, plan);
    EXPECT_NEAR(run_all(run_gemm(card_, plan)) / predicted, 1.0, 0.15);
}

TEST_F(Execute, the_clock_falls_for_what_is_long_and_multiplies) {
    EXPECT_EQ(repeated_clock(gpu_, 1e-3, 1), 1);
    EXPECT_DOUBLE_EQ(repeated_clock(gpu_, 1, 1), gpu_.kernels.throttled_clock);
    EXPECT_GT(repeated_clock(gpu_, 1, 0.5), gpu_.kernels.throttled_clock);
    EXPECT_EQ(repeated_clock(gpu_, 1, 0), 1);
    const GemmPlan plan = plan_gemm(gpu_, {8192, 8192, 8192});
    EXPECT_NEAR(tiles_seconds(at_clock(gpu_, 0.5), plan) / tiles_seconds(gpu_, plan), 2, 0.1);
}

struct Ends final : BlockOwner {
    Endpoint& gpu;
    std::vector<std::pair<std::uint32_t, Ps>> list;  ///< block, when
    explicit Ends(Endpoint& endpoint) : gpu(endpoint) {}
    void block_done(std::uint32_t block) override { list.emplace_back(block, gpu.now()); }
};

/// Submits a block that takes 10 ns whatever else runs, one after the other, from a program.
Process submit(Card& card, Ends& ends, std::vector<Priority> priorities, const TileWork& work,
               const TileRates& rates) {
    for (std::uint32_t i = 0; i < priorities.size(); ++i) {
        card.blocks.submit({&work, &rates, &ends, i}, priorities[i]);
    }
    co_return;
}

class Blocks : public Execute {
  protected:
    std::vector<std::pair<std::uint32_t, Ps>> ends_of(std::vector<Priority> priorities) {
        Gpu two = gpu_;
        two.sms = 2;
        Card card(fabric_.gpu(0), two);
        Ends ends(fabric_.gpu(0));
        const TileWork work{.store_bytes = 10};
        const TileRates rates{.load = 1, .store = 1e9, .hbm = 1};
        fabric_.gpu(0).spawn("launch", submit(card, ends, std::move(priorities), work, rates));
        fabric_.run();
        EXPECT_EQ(card.blocks.free(), 2);
        return ends.list;
    }
};

TEST_F(Blocks, beyond_the_sms_wait_their_turn) {
    using enum Priority;
    const std::vector<std::pair<std::uint32_t, Ps>> expected = {
        {0, 10'000}, {1, 10'000}, {2, 20'000}, {3, 20'000}, {4, 30'000}};
    EXPECT_EQ(ends_of({normal, normal, normal, normal, normal}), expected);
}

TEST_F(Blocks, that_are_more_urgent_go_first) {
    using enum Priority;
    const std::vector<std::pair<std::uint32_t, Ps>> expected = {
        {0, 10'000}, {1, 10'000}, {4, 20'000}, {3, 20'000}, {2, 30'000}};
    EXPECT_EQ(ends_of({low, low, low, normal, high}), expected);
}

TEST_F(Execute, activity_divides_time_into_compute_exposed_communication_and_the_rest) {
    Activity activity;
    activity.communicate(1, 10);  // 0-10: nothing
    activity.compute(1, 30);      // 10-30: exposed
    activity.compute(1, 35);
    activity.compute(-2, 60);  // 30-60: compute
    activity.communicate(-1, 75);
    activity.compute(0, 100);
    EXPECT_EQ(activity.computed(), 30);
    EXPECT_EQ(activity.exposed(), 35);
}

Process draw_at(Endpoint& gpu, SharedRate& rate, Ps start, double amount, std::vector<Ps>& ends) {
    co_await gpu.delay(start);
    Draw draw{rate, amount};
    co_await draw;
    ends.push_back(gpu.now());
}

TEST_F(Execute, a_shared_rate_is_divided_evenly_and_capped_for_one) {
    // 100 units/ns together, 60 alone. A: 600 units from 0. B: 1000 units from 5 ns.
    SharedRate rate(fabric_.gpu(0), 100e9, 60e9);
    std::vector<Ps> ends;
    Endpoint& gpu = fabric_.gpu(0);
    gpu.spawn("A", draw_at(gpu, rate, 0, 600, ends));
    gpu.spawn("B", draw_at(gpu, rate, 5 * kNs, 1000, ends));
    fabric_.run();
    // A has 300 left when B comes; both run at 50: A ends at 11 ns, B has 700 left, at 60: 11.67
    // ns.
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_NEAR(static_cast<double>(ends[0]), 11'000, 3);
    EXPECT_NEAR(static_cast<double>(ends[1]), 11'000 + 11'667, 3);
}

}  // namespace
}  // namespace moehub::sim::execute_test
