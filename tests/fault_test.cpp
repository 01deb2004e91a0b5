// Does every system notice when what a transfer carries is lost, comes twice, or comes after all
// counts say that it is there? A row that a receiver knew beside the wire would pass.
#include "heap_oracle.hpp"

#include <gtest/gtest.h>

namespace moehub::testing::fault_test {
namespace {

class EverySystemWithFaults : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Systems, EverySystemWithFaults, ::testing::ValuesIn(system_names()),
                         name_of_system);

TEST_P(EverySystemWithFaults, notices_a_lost_a_doubled_and_a_late_transfer) {
    if (GetParam() == "ideal") GTEST_SKIP() << "it moves nothing";
    Case layer;
    layer.tokens = 64;
    for (const Grain grain : {Grain::row, Grain::packet}) {
        layer.options.grain = grain;
        expect_noticed(layer, GetParam(), 16);
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
    expect_same_on_the_heap(layer, GetParam());
}

}  // namespace
}  // namespace moehub::testing::fault_test
