// Does a layer without experts run on the same GPUs, and is what it sums checked?
#include "small_layer.hpp"
#include "systems/tp/tp.hpp"

#include <gtest/gtest.h>

namespace moehub::testing {
namespace {

Model dense_model() {
    Model model = small_model(0, 0, 1024);
    model.dense_ffn = 4096;
    return model;
}

LayerResult run(Grain grain, sim::Fault fault = {}) {
    Machine machine = small_gpus(4);
    machine.collective.switch_launch = 25 * kUs;
    machine.collective.outstanding_loads = 4224;
    layers::GpusOptions options;
    options.grain = grain;
    options.fault = fault;
    return systems::run_sp_nvls({machine, dense_model(), 256, options});
}

TEST(TpLayer, moves_what_the_closed_form_says_in_both_grains) {
    for (const Grain grain : {Grain::packet, Grain::row}) {
        const LayerResult result = run(grain);
        // Per line of 128 B: an answer of each GPU, one request; a store, and an acknowledgement of
        // each GPU. And two barriers of flags: one packet of two flits to each other, acknowledged.
        const std::int64_t lines = 256 * 2048 / 128;
        const std::int64_t flags = 2 * 4 * 3 * (2 + 1);
        EXPECT_EQ(result.bytes_up, (lines * (4 * 9 + 2 + 10 + 4 * 1) + flags) * 16);
        EXPECT_EQ(result.bytes_down, (lines * (9 + 4 * 2 + 4 * 10 + 1) + flags) * 16);
        EXPECT_GT(result.breakdown.compute, 0);
    }
}

TEST(TpLayer, is_about_as_fast_in_row_grain) {
    const auto packet = static_cast<double>(run(Grain::packet).time);
    EXPECT_NEAR(static_cast<double>(run(Grain::row).time) / packet, 1, 0.02);
}

TEST(TpLayer, notices_lost_doubled_and_late_sums_and_outputs) {
    using What = sim::Fault::What;
    for (const Grain grain : {Grain::packet, Grain::row}) {
        for (const What what : {What::drop, What::duplicate, What::delay}) {
            for (const std::int64_t transfer : {0, 1, 9, 20}) {
                EXPECT_THROW(run(grain, {what, transfer, 1'000'000 * kUs}), std::logic_error)
                    << static_cast<int>(what) << " " << transfer;
            }
        }
    }
}

TEST(TpLayer, refuses_a_width_that_does_not_divide) {
    Model model = dense_model();
    model.dense_ffn = 4098;
    const Machine machine = small_gpus(4);
    EXPECT_THROW(systems::run_sp_nvls({machine, model, 256, {}}), InputError);
}

}  // namespace
}  // namespace moehub::testing
