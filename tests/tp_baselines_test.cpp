// Do the software baselines of tensor-parallel sub-layers move what they say, and nothing wrong?
#include "sim/gpu/gemm.hpp"
#include "sim/gpu/tile.hpp"
#include "small_tp.hpp"

#include <array>

#include <gtest/gtest.h>

namespace moehub::testing::tp_baselines_test {
namespace {

constexpr std::array<const char*, 7> kBaselines = {
    "coconet", "coconet-nvls", "fuselib", "fuselib-nvls", "t3", "t3-nvls", "ladm"};
TEST(TpBaselines, sum_and_spread_rows_of_any_size_on_any_number_of_gpus) {
    for (const char* system : kBaselines) {
        for (const Grain grain : kGrains) {
            for (const int gpus : {1, 2, 3, 8}) {
                for (const std::int64_t tokens : {1, 7, 1000}) {
                    const TpCase one = odd_case(gpus, tokens, grain);
                    SCOPED_TRACE(::testing::Message()
                                 << system << " on " << gpus << " GPUs, " << tokens << " tokens");
                    LayerResult result;
                    ASSERT_NO_THROW(result = one.run(system));
                    EXPECT_TRUE(result.verified);
                    EXPECT_LE(result.largest_error, 1e-9);
                    EXPECT_GT(result.time, 0);
                    EXPECT_EQ(result.bytes_up == 0, gpus == 1);
                }
            }
        }
    }
}

#ifndef MOEHUB_SANITIZED  // long, and in code that shorter tests run
TEST(TpBaselines, run_all_sub_layers) {
    for (const char* system : kBaselines) {
        for (const Grain grain : kGrains) {
            for (const std::string& name : sub_layer_names()) {
                for (const int gpus : {1, 8}) {
                    TpCase one = odd_case(gpus, 300, grain);
                    one.part = *sub_layer_named(name);
                    LayerResult result;
                    ASSERT_NO_THROW(result = one.run(system)) << system << " " << name;
                    EXPECT_LE(result.largest_error, 1e-9);
                }
            }
        }
    }
}
#endif

TEST(TpBaselines, wait_for_slower_gpus_and_do_with_other_links) {
    for (const char* system : kBaselines) {
        for (const Grain grain : kGrains) {
            TpCase one = odd_case(4, 900, grain);
            one.machine.gpu_spread = 0.3;  // so that merge units' entries time out
            one.machine.cais.merge_timeout = 2 * kUs;
            one.machine.cais.merge_entries = 16;
            EXPECT_LE(one.run(system).largest_error, 1e-9) << system;
            const bool switched = std::string_view(system).find("nvls") != std::string_view::npos;
            if (switched) continue;
            one.machine.topology = NodeTopology::mesh;
            one.machine.switches = 0;
            one.machine.in_switch = false;
            EXPECT_LE(one.run(system).largest_error, 1e-9) << system;
        }
    }
}

TEST(TpBaselines, load_a_packet_at_a_time_where_the_window_is_no_larger) {
    const TpCase one = odd_case(4, 100, Grain::packet);
    for (const char* system : {"coconet-nvls", "fuselib-nvls", "ladm"}) {
        SystemSpec spec = load_system(system);
        const Ps time = simulate_tp(one.input(), spec, one.options).time;
        spec.load_window = 128;
        EXPECT_GT(simulate_tp(one.input(), spec, one.options).time, time) << system;
    }
}

/// Flits on all links, both ways.
struct Flits {
    std::int64_t up = 0;
    std::int64_t down = 0;
};

Flits expected(const std::string& system, const TpCase& one) {
    const std::int64_t n = one.machine.gpus();
    const std::int64_t lines = one.tokens * 2 * one.model.hidden / 128;
    const std::int64_t pieces = one.tokens / 128;
    const std::int64_t there = (n - 1) * lines * 10;  // once to each other: 9 flits, answered by 1
    const std::int64_t flags = n * (n - 1) * 3;       // flags of everyone to each other
    const Flits multicast = {lines * (10 + n), lines * (10 * n + 1)};
    if (system == "coconet" || system == "t3") return {2 * there, 2 * there};
    if (system == "fuselib") {
        const std::int64_t both = 2 * there + 2 * pieces * (n - 1) * 3;
        return {both, both};
    }
    if (system == "coconet-nvls" || system == "fuselib-nvls") {
        const std::int64_t told = pieces * (n - 1) * 3 + flags;
        return {lines * (9 * n + 2) + multicast.up + told,
                lines * (9 + 2 * n) + multicast.down + told};
    }
    if (system == "t3-nvls") {  // merged: one line home, acknowledged to the switch
        return {lines * (9 * (n - 1) + 1) + multicast.up, lines * (9 + n - 1) + multicast.down};
    }
    const std::int64_t columns =
        plan_gemm(one.machine.gpu, {one.tokens, one.model.hidden, one.model.dense_ffn / n, true})
            .tiles_across;
    const std::int64_t both = (1 + columns) * there + 2 * flags;
    return {both, both};
}

TEST(TpBaselines, move_what_the_closed_form_says_in_both_grains) {
    for (const char* system : kBaselines) {
        for (const int gpus : {2, 4, 8}) {
            for (const Grain grain : kGrains) {
                TpCase one;
                one.machine = small_gpus(gpus);
                one.options.grain = grain;
                const LayerResult result = one.run(system);
                const Flits wanted = expected(system, one);
                EXPECT_EQ(result.bytes_up, 16 * wanted.up) << system << " " << gpus;
                EXPECT_EQ(result.bytes_down, 16 * wanted.down) << system << " " << gpus;
            }
        }
    }
}

TEST(TpBaselines, notice_lost_doubled_and_late_rows) {
    using What = sim::Fault::What;
    for (const char* system : kBaselines) {
        for (const Grain grain : kGrains) {
            TpCase one;
            one.options.grain = grain;
            one.tokens = 500;
            // A fault strikes where it arrives, and what is merged arrives as the first of them.
            if (std::string_view(system) == "t3-nvls") one.machine = small_gpus(2);
            std::int64_t carry = 0;
            one.run_with(system, {What::none, 0, 0, &carry});
            ASSERT_GT(carry, 0);
            for (const What what : {What::drop, What::duplicate, What::delay}) {
                for (const std::int64_t nth : {std::int64_t{0}, carry / 3, carry / 2, carry - 1}) {
                    EXPECT_THROW(one.run_with(system, {what, nth, 1'000'000 * kUs}),
                                 std::logic_error)
                        << system << " " << static_cast<int>(what) << " " << nth;
                }
            }
        }
    }
}

TEST(TpBaselines, are_about_as_fast_in_row_grain_and_none_beats_the_bound) {
    TpCase one;
    one.machine = load_machine("dgx-h100");
    one.machine.gpu = with_sms(one.machine.gpu, 66);
    one.model = dense_model(2048);
    one.tokens = 4096;
    one.model.dense_ffn = 8192;
    const double bound = static_cast<double>(one.run("ideal").time);
    for (const char* system : kBaselines) {
        one.options.grain = Grain::packet;
        const double packet = static_cast<double>(one.run(system).time);
        one.options.grain = Grain::row;
        EXPECT_NEAR(static_cast<double>(one.run(system).time) / packet, 1, 0.03) << system;
        EXPECT_GT(packet, bound) << system;
    }
}

}  // namespace
}  // namespace moehub::testing::tp_baselines_test
