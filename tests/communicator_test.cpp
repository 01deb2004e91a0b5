// Can any program await a collective, as often as it likes, when it comes to it?
#include "sim/collective/communicator.hpp"

#include "traffic.hpp"

#include <gtest/gtest.h>

namespace moehub::testing::communicator_test {
namespace {

using sim::GpuId;
using Algorithm = Collective::Algorithm;

Machine machine_with_costs(int gpus) {
    Machine machine = small_machine(gpus);
    machine.collective = {8 * kUs, 3 * kUs, 25 * kUs, 4224};
    return machine;
}

/// All-reduces one after the other; GPU 0 comes to the first later by `late`.
sim::Process several(sim::Communicator& all, GpuId gpu, Algorithm algorithm, Ps late,
                     std::vector<std::vector<Ps>>& ends) {
    sim::Endpoint& endpoint = all.endpoint(gpu);
    co_await endpoint.delay(gpu == all.member(0) ? late : 0);
    for (std::vector<Ps>& end : ends) {
        co_await all_reduce(all, gpu, {1 << 20, algorithm});
        end[all.rank(gpu)] = endpoint.now();
    }
}

std::vector<std::vector<Ps>> run_several(Algorithm algorithm, Ps late,
                                         std::vector<GpuId> members = {0, 1, 2, 3, 4, 5, 6, 7}) {
    sim::FabricOptions options;
    sim::Fabric fabric(machine_with_costs(8), options);
    sim::Communicator all(fabric, members, "test");
    std::vector<std::vector<Ps>> ends(3, std::vector<Ps>(members.size()));
    for (const GpuId gpu : members)
        fabric.gpu(gpu).spawn("program", several(all, gpu, algorithm, late, ends));
    fabric.run();
    return ends;
}

class Awaited : public ::testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, Awaited,
                         ::testing::Values(Algorithm::direct, Algorithm::ring, Algorithm::nvls,
                                           Algorithm::automatic, Algorithm::one_shot));

TEST_P(Awaited, the_second_takes_as_long_as_the_first) {
    const auto ends = run_several(GetParam(), 0);
    const auto last = [](const std::vector<Ps>& times) {
        return *std::max_element(times.begin(), times.end());
    };
    const double first = static_cast<double>(last(ends[0]));
    EXPECT_NEAR(static_cast<double>(last(ends[1])) / first, 2, 0.05);
    EXPECT_NEAR(static_cast<double>(last(ends[2])) / first, 3, 0.05);
}

TEST_P(Awaited, nobody_is_through_before_the_last_has_come) {
    const Ps late = 500 * kUs;
    const auto ends = run_several(GetParam(), late);
    for (const Ps end : ends[0]) EXPECT_GT(end, late);
}

TEST_P(Awaited, some_gpus_of_a_node_can_have_one_of_their_own) {
    const auto ends = run_several(GetParam(), 0, {1, 4, 6});
    for (const std::vector<Ps>& times : ends) EXPECT_GT(times[2], 0);
}

/// Rows in uneven parcels, twice; a slow GPU must not take the second for the first.
sim::Process swap_twice(sim::Communicator& all, GpuId gpu, Ps late,
                        std::vector<std::vector<std::int64_t>>& got) {
    co_await all.endpoint(gpu).delay(late);
    for (std::int64_t round = 0; round < 2; ++round) {
        std::vector<sim::Parcel> parcels(all.size());
        for (std::uint32_t to = 0; to < all.size(); ++to) {
            parcels[to].bytes = (to + gpu) * 1000;
            parcels[to].message.counts = {round * 100 + gpu * 10 + to};
        }
        co_await exchange(all, gpu, std::move(parcels));
        std::int64_t sum = 0;
        for (const sim::Received& from : all.received(gpu)) {
            EXPECT_EQ(from.message.counts.front(), round * 100 + from.from * 10 + gpu);
            ++sum;
        }
        got[gpu].push_back(sum);
    }
}

TEST(Exchange, brings_what_was_put_in_and_can_be_repeated) {
    for (const Ps late : {Ps{0}, 300 * kUs}) {
        sim::FabricOptions options;
        sim::Fabric fabric(machine_with_costs(4), options);
        sim::Communicator all(fabric, "test");
        std::vector<std::vector<std::int64_t>> got(4);
        for (std::uint32_t i = 0; i < 4; ++i) {
            const auto gpu = static_cast<GpuId>(i);
            fabric.gpu(gpu).spawn("program", swap_twice(all, gpu, i == 2 ? late : 0, got));
        }
        fabric.run();
        for (const auto& rounds : got) EXPECT_EQ(rounds, (std::vector<std::int64_t>{3, 3}));
    }
}

}  // namespace
}  // namespace moehub::testing::communicator_test
