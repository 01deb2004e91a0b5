// Does every system notice when what a transfer carries is lost, comes twice, or comes after all
// counts say that it is there? A row that a receiver knew beside the wire would pass.
#include "systems/systems.hpp"

#include "small_layer.hpp"

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
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST_P(EverySystemWithFaults, notices_a_lost_a_doubled_and_a_late_transfer) {
    if (GetParam() == "ideal") GTEST_SKIP() << "it moves nothing";
    Case layer;
    layer.machine.gpu = load_gpu("h800-sxm");
    using What = sim::Fault::What;
    for (const Grain grain : {Grain::row, Grain::packet}) {
        layer.options.grain = grain;
        EXPECT_FALSE(notices(layer, GetParam(), {})) << "nothing is wrong";
        for (const What what : {What::drop, What::duplicate, What::delay}) {
            for (const std::int64_t transfer : {0, 3, 11}) {
                const sim::Fault fault{what, transfer, 1'000'000 * kUs};
                EXPECT_TRUE(notices(layer, GetParam(), fault))
                    << "fault " << static_cast<int>(what) << " of transfer " << transfer;
            }
        }
    }
}

/// Which transfers carry rows differs by system; all of one small run are tried.
TEST_P(EverySystemWithFaults, notices_whichever_transfer_of_a_small_layer_is_lost) {
    if (GetParam() == "ideal") GTEST_SKIP() << "it moves nothing";
    Case layer;
    layer.tokens = 16;
    for (std::int64_t transfer = 0; transfer < 12; ++transfer) {
        EXPECT_TRUE(notices(layer, GetParam(), {sim::Fault::What::drop, transfer, 0}))
            << "transfer " << transfer;
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
