// Do tensor-parallel sub-layers run under Megatron's collectives and under CAIS, and is what they
// sum checked?
#include "layers/tp/dataflow.hpp"
#include "sim/gpu/gemm.hpp"
#include "small_tp.hpp"

#include <gtest/gtest.h>

namespace moehub::testing::tp_layer_test {
namespace {

constexpr std::array<const char*, 6> kSystems = {"ideal",     "tp-nvls",      "sp-nvls",
                                                 "cais-base", "cais-partial", "cais"};

TpCase usual(Grain grain) {
    TpCase one;
    one.machine.collective.switch_launch = 25 * kUs;
    one.machine.collective.outstanding_loads = 4224;
    one.tokens = 256;
    one.options.grain = grain;
    return one;
}

TEST(TpLayer, verifies_rows_of_any_size_on_any_number_of_gpus) {
    for (const char* system : kSystems) {
        for (const Grain grain : kGrains) {
            for (const int gpus : {1, 2, 3, 8}) {
                for (const std::int64_t tokens : {1, 7, 1000}) {
                    SCOPED_TRACE(::testing::Message()
                                 << system << " on " << gpus << " GPUs, " << tokens << " tokens");
                    LayerResult result;
                    ASSERT_NO_THROW(result = odd_case(gpus, tokens, grain).run(system));
                    EXPECT_TRUE(result.verified);
                    EXPECT_LE(result.largest_error, 1e-9);
                }
            }
        }
    }
}

TEST(TpLayer, runs_all_sub_layers) {
    for (const char* system : kSystems) {
        for (const std::string& name : sub_layer_names()) {
            for (const int gpus : {1, 8}) {
                TpCase one = odd_case(gpus, 300, Grain::row);
                one.part = *sub_layer_named(name);
                SCOPED_TRACE(::testing::Message() << system << " " << name);
                LayerResult result;
                ASSERT_NO_THROW(result = one.run(system));
                EXPECT_LE(result.largest_error, 1e-9);
            }
        }
    }
}

TEST(TpLayer, moves_through_switches_what_the_closed_form_says) {
    for (const Grain grain : kGrains) {
        // Per line of 128 B: an answer of each GPU, one request; a store, and an acknowledgement of
        // each GPU. And two barriers of flags: one packet of two flits to each other, acknowledged.
        const std::int64_t lines = 256 * 2048 / 128;
        const std::int64_t flags = 2 * 4 * 3 * (2 + 1);
        for (const char* system : {"tp-nvls", "sp-nvls"}) {
            const LayerResult result = usual(grain).run(system);
            EXPECT_EQ(result.bytes_up, (lines * (4 * 9 + 2 + 10 + 4 * 1) + flags) * 16) << system;
            EXPECT_EQ(result.bytes_down, (lines * (9 + 4 * 2 + 4 * 10 + 1) + flags) * 16) << system;
        }
    }
}

TEST(TpLayer, merges_under_cais_what_the_closed_form_says) {
    for (const Grain grain : kGrains) {
        for (const char* system : {"cais", "cais-partial"}) {
            TpCase one = usual(grain);
            one.machine.cais.merge_entries = 5000;
            const LayerResult result = one.run(system);
            ASSERT_EQ(statistic(result, "merge", "evicted"), 0);
            ASSERT_EQ(statistic(result, "merge", "timed_out"), 0);
            ASSERT_EQ(statistic(result, "merge", "bypassed"), 0);
            const std::int64_t lines = 256 * 2048 / 128;
            // Reductions of three GPUs, one sum and its acknowledgement, one for each of them;
            // requests of three, one answer, one for each of them.
            const std::int64_t up = lines * (3 * 9 + 1) + lines * (3 * 1 + 9);
            const std::int64_t down = lines * (9 + 3 * 1) + lines * (1 + 3 * 9);
            // A packet of each GPU to each switch and back: all for row blocks and for loads of a
            // piece, three for its reductions.
            const SystemSpec spec = load_system(system);
            const TpInput in = one.input();
            const std::vector<layers::Fused> fused =
                layers::optimise(layers::operators_of(in), one.machine.gpu, spec.fuse_blocks);
            Gpu part = one.machine.gpu;
            part.bf16_flops *= static_cast<double>(fused.front().first_sms) / part.sms;
            part.sms = fused.front().first_sms;
            const GemmPlan plan = plan_gemm(part, {256, 1024 / 4, 1024, true});
            const std::int64_t blocks = (256 - 1) / plan.tile_rows + 1;
            const std::int64_t meetings = (4 * blocks + 4 * 4 + 4 * 3) * one.machine.switches;
            EXPECT_EQ(result.bytes_up, (up + meetings) * 16) << system;
            EXPECT_EQ(result.bytes_down, (down + meetings) * 16) << system;
        }
    }
}

TEST(TpLayer, notices_lost_doubled_and_late_sums_and_rows) {
    using What = sim::Fault::What;
    for (const char* system : {"tp-nvls", "sp-nvls", "cais-base", "cais"}) {
        for (const Grain grain : kGrains) {
            for (const What what : {What::drop, What::duplicate, What::delay}) {
                for (const std::int64_t transfer : {0, 1, 9, 20, 100}) {
                    std::int64_t seen = 0;
                    sim::Fault fault{what, transfer, 1'000'000 * kUs};
                    fault.seen = &seen;
                    const auto run = [&] { usual(grain).run_with(system, fault); };
                    try {
                        run();
                        EXPECT_LE(seen, transfer) << system << " " << static_cast<int>(what);
                    } catch (const std::logic_error&) {
                    }
                }
            }
        }
    }
}

TEST(TpLayer, is_about_as_fast_in_row_grain_and_none_beats_the_bound) {
    for (const char* system : kSystems) {
        TpCase one;
        one.machine.switches = 4;
        one.tokens = 2048;
        one.options.grain = Grain::packet;
        const auto packet = static_cast<double>(one.run(system).time);
        one.options.grain = Grain::row;
        const Ps row = one.run(system).time;
        // A train's way through a merge unit, which waits for its end, is a part of some 30 µs.
        EXPECT_NEAR(static_cast<double>(row) / packet, 1, 0.08) << system;
        EXPECT_GE(row, one.run("ideal").time) << system;
    }
}

/// Tables of one line, no time and too much of it, GPUs that drift apart: all rows come.
TEST(Cais, goes_on_whatever_its_tables_give_up) {
    for (const char* system : {"cais-base", "cais"}) {
        for (const Grain grain : kGrains) {
            for (const int entries : {1, 7, 320}) {
                for (const Ps timeout : {Ps{0}, 2 * kUs, 1'000'000 * kUs}) {
                    TpCase one = odd_case(4, 200, grain);
                    one.machine.cais = {entries, timeout};
                    one.machine.gpu_spread = 0.3;
                    SCOPED_TRACE(::testing::Message()
                                 << system << ", " << entries << " entries, " << to_us(timeout));
                    LayerResult result;
                    ASSERT_NO_THROW(result = one.run(system));
                    EXPECT_LE(result.largest_error, 1e-9);
                }
            }
        }
    }
}

TEST(Cais, coordinated_gpus_need_a_smaller_table_and_wait_less_in_it) {
    TpCase one;
    one.machine = load_machine("dgx-h100");
    one.model = load_model("llama-7b");
    one.tokens = 4608;
    one.machine.start_spread = 35 * kUs;
    one.machine.cais = {1'000'000, 1'000'000 * kUs};
    SystemSpec apart = load_system("cais");
    apart.coordinate = false;
    const LayerResult together = one.run("cais");
    const LayerResult alone = simulate_tp(one.input(), apart, one.options);
    for (const char* what : {"deepest", "spread_us"})
        EXPECT_LT(3 * statistic(together, "merge", what), statistic(alone, "merge", what)) << what;
}

TEST(Cais, runs_all_gpus_alike_whatever_their_clocks) {
    // With their own tile shapes GPUs would wait for thread blocks that others do not have.
    for (const double spread : {0.01, 0.05, 0.2, 0.5}) {
        TpCase one;
        one.machine.gpu_spread = spread;
        EXPECT_NO_THROW(one.run("cais")) << spread;
    }
}

TEST(Dataflow, fuses_what_needs_only_its_own_rows) {
    TpCase one;
    one.tokens = 65536;
    const TpInput in = one.input();
    const auto layer = layers::layer_operators(in);
    const auto fused = layers::optimise(layer, one.machine.gpu, true);
    const std::string text = layers::to_text(layer, fused);
    ASSERT_EQ(fused.size(), 4u) << text;  // L2, attention, L1, activation
    EXPECT_TRUE(fused[0].by_blocks && fused[2].by_blocks) << text;
    for (const std::size_t i : {0u, 2u}) {
        EXPECT_GT(fused[i].first_sms, 0);
        EXPECT_EQ(fused[i].first_sms + fused[i].second_sms, one.machine.gpu.sms);
    }
    EXPECT_NE(text.find("attention: a kernel of its own: a row needs others"), std::string::npos)
        << text;
    // With few tiles there is nothing to divide.
    one.tokens = 64;
    const TpInput few = one.input();
    const auto whole = layers::optimise(layers::operators_of(few), one.machine.gpu, true);
    ASSERT_EQ(whole.size(), 1u);
    EXPECT_EQ(whole[0].first_sms, one.machine.gpu.sms);
    EXPECT_EQ(whole[0].second_sms, one.machine.gpu.sms);
    const auto apart = layers::optimise(layer, one.machine.gpu, false);
    EXPECT_EQ(apart.size(), 8u) << layers::to_text(layer, apart);
}

TEST(TpLayer, says_what_it_cannot_run) {
    TpCase one;
    one.model.attention.heads = 1;
    one.model.attention.head_dim = 2;
    EXPECT_THROW(one.run("cais"), InputError);  // a width of two over four GPUs
    one = {};
    one.tokens = 0;
    EXPECT_THROW(one.run("cais"), InputError);
    one = {};
    one.machine.in_switch = false;
    EXPECT_THROW(one.run("cais"), InputError);
    EXPECT_NO_THROW(one.run("t3"));
    one = {};
    EXPECT_THROW(one.run("moe-hub"), InputError);
}

}  // namespace
}  // namespace moehub::testing::tp_layer_test
