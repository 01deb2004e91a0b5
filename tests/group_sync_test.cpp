// Do GPUs that meet at a switch all go on when the last has come, and not before? Both grains, both
// schemes.
#include "grains.hpp"
#include "traffic.hpp"

#include <gtest/gtest.h>

namespace moehub::testing::group_sync_test {
namespace {

// small_machine(): a flit takes 100 ps on one of the links.
constexpr Ps kStore = 150 * kNs, kHop = 250 * kNs, kFlit = 100;

class Meeting : public InGrainAndScheme {};
IN_BOTH_GRAINS_AND_SCHEMES(Meeting);

/// At place `number`, at each of the switches.
sim::Transfer meet(const sim::Fabric& fabric, int switches, std::uint64_t number, int gpus) {
    sim::Transfer transfer;
    transfer.kind = sim::EventKind::meet;
    transfer.bytes = fabric.link().payload * switches;
    transfer.address = number * static_cast<std::uint64_t>(transfer.bytes);
    transfer.target.merge = static_cast<std::uint16_t>(gpus);
    return transfer;
}

struct Meet {
    Ps start = 0;
    std::uint64_t number = 0;
};
sim::Process come(sim::Fabric& fabric, std::uint32_t id, std::vector<Meet> meetings,
                  std::vector<Ps>& left, int switches, int gpus) {
    sim::Endpoint& gpu = fabric.gpu(id);
    const sim::CounterId done = gpu.add_counter("met");
    std::int64_t met = 0;
    for (const Meet& one : meetings) {
        co_await gpu.delay(one.start - gpu.now());
        sim::Transfer transfer = meet(fabric, switches, one.number, gpus);
        transfer.answered = done;
        gpu.post(transfer);
        co_await gpu.until(done, ++met);
        left.push_back(gpu.now());
    }
}

TEST_P(Meeting, all_go_on_when_the_last_has_come) {
    const int switches = 4;
    sim::Fabric fabric(small_machine(8, switches), options());
    std::vector<std::vector<Ps>> left(8);
    const Ps last = 3000 * kNs;
    for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
        fabric.gpu(gpu).spawn(
            "come", come(fabric, gpu, {{gpu == 5 ? last : gpu * kNs, 0}}, left[gpu], switches, 8));
    }
    fabric.run();
    // A flit to each switch, and one back. A train's last packet is taken to leave behind all
    // others and then to take a link's time: three quarters of a flit more each way.
    const Ps more = std::get<0>(GetParam()) == Grain::row ? 2 * 3 * kFlit / 4 : 0;
    for (const auto& times : left) {
        ASSERT_EQ(times.size(), 1u);
        EXPECT_EQ(times[0], last + kStore + 2 * (kFlit + kHop) + more);
    }
    EXPECT_EQ(fabric.wire_bytes_up(), 8 * switches * 16);
    EXPECT_EQ(fabric.wire_bytes_down(), 8 * switches * 16);
    EXPECT_EQ(fabric.group_sync_stats().deepest, 1);
    EXPECT_EQ(fabric.payload_received(), 0);
    EXPECT_EQ(fabric.packets_received(), 0);
}

TEST_P(Meeting, places_are_apart_and_can_be_used_again) {
    sim::Fabric fabric(small_machine(3, 2), options());
    std::vector<std::vector<Ps>> left(3);
    fabric.gpu(0).spawn("come", come(fabric, 0, {{0, 0}, {0, 1}, {0, 0}}, left[0], 2, 2));
    fabric.gpu(1).spawn("come", come(fabric, 1, {{5000 * kNs, 0}, {0, 0}}, left[1], 2, 2));
    fabric.gpu(2).spawn("come", come(fabric, 2, {{9000 * kNs, 1}}, left[2], 2, 2));
    fabric.run();
    EXPECT_GT(left[0][0], 5000 * kNs);
    EXPECT_GT(left[0][1], 9000 * kNs);
    EXPECT_EQ(left[0][1], left[2][0]);
    EXPECT_EQ(left[0][2], left[1][1]);
    EXPECT_EQ(fabric.group_sync_stats().deepest, 2);
}

TEST_P(Meeting, who_does_not_come_keeps_all_others) {
    sim::Fabric fabric(small_machine(4, 2), options());
    std::vector<std::vector<Ps>> left(4);
    for (std::uint32_t gpu = 0; gpu < 3; ++gpu) {
        fabric.gpu(gpu).spawn("come", come(fabric, gpu, {{0, 0}}, left[gpu], 2, 4));
    }
    EXPECT_THROW(fabric.run(), sim::Deadlock);
    fabric.drop_programs();
}

TEST_P(Meeting, acknowledgements_that_cost_nothing_come_too) {
    Machine machine = small_machine(2, 1);
    machine.link.ack_flits = 0;
    sim::Fabric fabric(machine, options());
    std::vector<std::vector<Ps>> left(2);
    for (std::uint32_t gpu = 0; gpu < 2; ++gpu) {
        fabric.gpu(gpu).spawn("come", come(fabric, gpu, {{0, 0}}, left[gpu], 1, 2));
    }
    fabric.run();
    EXPECT_EQ(left[0][0], kStore + kFlit + kHop + kHop);
    EXPECT_EQ(fabric.wire_bytes_down(), 0);
}

/// Random times and many places: everyone leaves a place after the last has come to it.
TEST(GroupSync, lets_nobody_go_early_whatever_the_order) {
    for (unsigned seed = 0; seed < 30; ++seed) {
        std::mt19937 random(seed);
        const auto gpus = 2 + random() % 7;
        const auto switches = static_cast<int>(1 + random() % 4);
        std::vector<std::vector<Meet>> plans(gpus);
        std::vector<Ps> latest(20);
        for (std::uint64_t number = 0; number < latest.size(); ++number) {
            for (auto& plan : plans) {
                const Ps start = static_cast<Ps>(random() % 3000) * kNs;
                plan.push_back({start, number});
                latest[number] = std::max(latest[number], start);
            }
        }
        for (const Grain grain : {Grain::packet, Grain::row}) {
            std::vector<std::vector<Ps>> first;
            for (const sim::Scheme scheme : {sim::Scheme::windows, sim::Scheme::heap}) {
                sim::FabricOptions options;
                options.grain = grain;
                options.scheme = scheme;
                sim::Fabric fabric(small_machine(static_cast<int>(gpus), switches), options);
                std::vector<std::vector<Ps>> left(gpus);
                for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
                    fabric.gpu(gpu).spawn("come", come(fabric, gpu, plans[gpu], left[gpu], switches,
                                                       static_cast<int>(gpus)));
                }
                fabric.run();
                for (const auto& times : left) {
                    ASSERT_EQ(times.size(), latest.size());
                    for (std::size_t i = 0; i < times.size(); ++i) EXPECT_GT(times[i], latest[i]);
                }
                EXPECT_EQ(fabric.group_sync_stats().meetings,
                          static_cast<std::int64_t>(latest.size()) *
                              (grain == Grain::row ? 1 : switches));
                if (first.empty()) first = left;
                EXPECT_EQ(first, left);
            }
        }
    }
}

TEST(GroupSync, needs_a_switch_and_a_number) {
    Machine mesh = small_machine(4, 0);
    mesh.topology = NodeTopology::mesh;
    mesh.in_switch = false;
    mesh.link.bandwidth = 480e9;
    sim::Fabric fabric(mesh, {});
    EXPECT_THROW(fabric.gpu(0).post(meet(fabric, 1, 0, 2)), std::logic_error);
    sim::Fabric switched(small_machine(), {});
    EXPECT_THROW(switched.gpu(0).post(meet(switched, 1, 0, 0)), std::logic_error);
}

}  // namespace
}  // namespace moehub::testing::group_sync_test
