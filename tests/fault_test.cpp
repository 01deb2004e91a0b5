// Does every system notice when what a transfer carries is lost, comes twice, or comes after all
// counts say that it is there? A row that a receiver knew beside the wire would pass.
#include "small_layer.hpp"
#include "systems/systems.hpp"

#include <gtest/gtest.h>

namespace moehub::testing {
namespace {

class EverySystemWithFaults : public ::testing::TestWithParam<std::string> {
  protected:
    /// Whether the run ends with an error, or its numbers with one.
    static bool notices(const Case& layer, const std::string& name, const sim::Fault& fault) {
        const LayerInput input{layer.machine, layer.model,
                               make_routing({}, layer.model, layer.tokens),
                               contiguous_placement(layer.model.experts, layer.machine.gpus())};
        const SystemSpec system = load_system(name);
        layers::Job job{input, system, layer.options};
        job.fault = fault;
        try {
            const LayerResult result = systems::run_job(job);
            return layer.options.verify && result.largest_error > 1e-6;
        } catch (const std::exception&) {
            return true;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Systems, EverySystemWithFaults, ::testing::ValuesIn(system_names()),
                         [](const auto& system) {
                             std::string name = system.param;
                             for (char& c : name) c = c == '-' || c == '+' ? '_' : c;
                             return name;
                         });

TEST_P(EverySystemWithFaults, notices_a_lost_a_doubled_and_a_late_transfer) {
    if (GetParam() == "ideal") GTEST_SKIP() << "it moves nothing";
    Case layer;
    layer.tokens = 64;
    using What = sim::Fault::What;
    for (const Grain grain : {Grain::row, Grain::packet}) {
        layer.options.grain = grain;
        std::int64_t carriers = 0;
        EXPECT_FALSE(notices(layer, GetParam(), {What::none, 0, 0, &carriers})) << "all is well";
        ASSERT_GT(carriers, 15) << "there and back";
        for (const What what : {What::drop, What::duplicate, What::delay}) {
            for (std::int64_t i = 0; i < 16; ++i) {  // over the whole run, first and last included
                const std::int64_t transfer = (carriers - 1) * i / 15;
                EXPECT_TRUE(notices(layer, GetParam(), {what, transfer, 1'000'000 * kUs}))
                    << "fault " << static_cast<int>(what) << " of transfer " << transfer << " of "
                    << carriers;
            }
        }
    }
}

/// Several blocks of rows an expert, so that what spills from one lies in the next.
TEST_P(EverySystemWithFaults, notices_a_doubled_transfer_among_many_blocks_of_rows) {
    if (GetParam() == "ideal") GTEST_SKIP() << "it moves nothing";
    Case layer;
    layer.model = small_model(4, 2);
    layer.tokens = 2048;
    std::int64_t carriers = 0;
    EXPECT_FALSE(notices(layer, GetParam(), {sim::Fault::What::none, 0, 0, &carriers}));
    for (std::int64_t i = 0; i < 6; ++i) {
        const std::int64_t transfer = (carriers - 1) * i / 5;
        EXPECT_TRUE(notices(layer, GetParam(), {sim::Fault::What::duplicate, transfer}))
            << "transfer " << transfer << " of " << carriers;
    }
}

/// The heap is the oracle of the windows, for whole layers too.
TEST_P(EverySystemWithFaults, takes_the_same_picoseconds_in_windows_and_on_the_heap) {
    Case layer;
    layer.model.shared_experts = 1;
    layer.model.shared_ffn = 256;
    for (const Grain grain : {Grain::row, Grain::packet}) {
        layer.options.grain = grain;
        const LayerInput input{layer.machine, layer.model,
                               make_routing({}, layer.model, layer.tokens),
                               contiguous_placement(layer.model.experts, layer.machine.gpus())};
        const SystemSpec system = load_system(GetParam());
        layers::Job job{input, system, layer.options};
        const LayerResult windows = systems::run_job(job);
        job.scheme = sim::Scheme::heap;
        const LayerResult heap = systems::run_job(job);
        EXPECT_EQ(windows.time, heap.time);
        EXPECT_EQ(windows.first_gemm, heap.first_gemm);
        EXPECT_EQ(windows.breakdown.communication, heap.breakdown.communication);
        EXPECT_EQ(windows.bytes_up, heap.bytes_up);
        EXPECT_EQ(windows.bytes_down, heap.bytes_down);
    }
}

}  // namespace
}  // namespace moehub::testing
