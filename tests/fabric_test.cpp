// Does the fabric's timing follow its closed forms, and is nothing lost?
#include "sim/fabric.hpp"

#include "grains.hpp"
#include "traffic.hpp"

#include <gtest/gtest.h>

namespace moehub::testing::fabric_test {
namespace {

// small_machine(): a flit takes 100 ps on one of four links, a full packet 9 flits.
constexpr Ps kPacket = 900;
constexpr Ps kStore = 150 * kNs, kHop = 250 * kNs, kWrite = 400 * kNs, kRead = 600 * kNs;

sim::FabricOptions packets() {
    sim::FabricOptions options;
    options.grain = Grain::packet;
    return options;
}

class BothGrains : public InGrain {};
IN_BOTH_GRAINS(BothGrains);

TEST_P(BothGrains, one_packet_takes_two_hops_two_serialisations_and_the_memory) {
    const Delivery result = deliver(small_machine(), {{0, 5, 128}}, options());
    EXPECT_EQ(result.delivered[0], kStore + 2 * (kPacket + kHop) + kWrite);
    // The acknowledgement, one flit, comes back the same way.
    EXPECT_EQ(result.completed[0], result.delivered[0] + 2 * (100 + kHop));
}

TEST_P(BothGrains, a_short_packet_takes_its_own_flits) {
    const Delivery result = deliver(small_machine(), {{0, 5, 33}}, options());
    EXPECT_EQ(result.delivered[0], kStore + 2 * (400 + kHop) + kWrite);  // header + 3 flits
    EXPECT_EQ(result.up, (4 + 1) * 16);
}

TEST_P(BothGrains, a_remote_load_waits_for_request_memory_and_data) {
    const Delivery result =
        deliver(small_machine(), {{0, 5, 128, 0, sim::EventKind::load}}, options());
    EXPECT_EQ(result.completed[0], kStore + 2 * (100 + kHop) + kRead + 2 * (kPacket + kHop));
}

TEST_P(BothGrains, a_remote_atomic_carries_its_operand_there_and_its_result_back) {
    const Delivery result =
        deliver(small_machine(), {{0, 5, 16, 0, sim::EventKind::atomic}}, options());
    EXPECT_EQ(result.completed[0], kStore + 2 * (200 + kHop) + kRead + 2 * (200 + kHop));
}

TEST_P(BothGrains, one_sender_saturates_all_its_links) {
    // 4 MiB = 32768 packets, 8192 on each link.
    const Delivery result = deliver(small_machine(), {{0, 1, 4 << 20}}, options());
    const Ps wire = 8192 * kPacket;
    EXPECT_NEAR(static_cast<double>(result.delivered[0]),
                static_cast<double>(wire + kPacket + kStore + 2 * kHop + kWrite), 2e3);
}

TEST_P(BothGrains, an_all_to_all_fills_links_with_data_and_acknowledgements) {
    // Every link carries 10 flits for each packet of data: nine, and the answer to another.
    const Bytes row = 8192;
    const int rows = 64;
    const Delivery result = deliver(small_machine(), all_to_all(8, row, rows), options());
    const double wire = 7.0 * rows * (row / 128) / 4 * 10 * 100;
    const double rest = kStore + 2 * kHop + kWrite;
    EXPECT_GT(static_cast<double>(result.end), 0.98 * wire);
    EXPECT_NEAR(static_cast<double>(result.end), wire + rest, 0.03 * wire);
}

TEST_P(BothGrains, an_incast_runs_at_the_rate_of_one_downlink) {
    const Delivery result = deliver(small_machine(), incast(8, 8192, 32), options());
    const double wire = 7.0 * 32 * 64 / 4 * kPacket;
    const double rest = kStore + 2 * kHop + kWrite;
    EXPECT_NEAR(static_cast<double>(result.end), wire + rest, 0.01 * wire);
}

TEST_P(BothGrains, bytes_out_are_bytes_in) {
    const std::vector<Flow> flows = sparse(8, 5000, 100, 20 * kUs, 7);
    const Delivery result = deliver(small_machine(), flows, options());
    EXPECT_EQ(result.received, 8 * 100 * 5000);
    EXPECT_EQ(result.up, result.down);
    // 5000 bytes: 39 full packets of 9 flits, and one of 8 bytes with 2; 40 acknowledgements.
    EXPECT_EQ(result.up, 8 * 100 * (39 * 9 + 2 + 40) * 16);
    for (const Ps time : result.completed) EXPECT_NE(time, sim::kNever);
}

/// How much longer GPU 0 needs to reach an idle GPU when it also sends to one that five others
/// flood.
double slowdown_behind_a_hot_gpu(sim::Queueing queueing) {
    sim::FabricOptions options = packets();
    options.queueing = queueing;
    std::vector<Flow> flows;
    for (int i = 0; i < 64; ++i) {
        flows.push_back({0, 1, 32768});
        flows.push_back({0, 2, 32768});
    }
    const Delivery alone = deliver(small_machine(), flows, options);
    for (std::uint32_t src = 3; src < 8; ++src) flows.push_back({src, 1, 4 << 20});
    const Delivery crowded = deliver(small_machine(), flows, options);
    Ps last_alone = 0, last_crowded = 0;
    for (std::size_t i = 1; i < 128; i += 2) {  // flows to the idle GPU 2
        last_alone = std::max(last_alone, alone.delivered[i]);
        last_crowded = std::max(last_crowded, crowded.delivered[i]);
    }
    return static_cast<double>(last_crowded) / static_cast<double>(last_alone);
}

TEST(Fabric, a_shared_fifo_lets_a_hot_gpu_hold_up_traffic_to_an_idle_one) {
    EXPECT_GT(slowdown_behind_a_hot_gpu(sim::Queueing::shared_fifo), 1.5);
}

TEST(Fabric, queues_per_peer_keep_traffic_to_an_idle_gpu_going) {
    EXPECT_LT(slowdown_behind_a_hot_gpu(sim::Queueing::per_peer), 1.05);
    EXPECT_LT(slowdown_behind_a_hot_gpu(sim::Queueing::rpm), 1.05);
}

TEST(Fabric, windows_and_heap_agree_on_every_row_under_tight_buffers) {
    for (const Grain grain : {Grain::packet, Grain::row}) {
        for (const auto queueing :
             {sim::Queueing::per_peer, sim::Queueing::shared_fifo, sim::Queueing::rpm}) {
            Machine machine = small_machine(6, 3);
            machine.link.buffer_flits = 9;
            machine.link.request_channels = 2;
            sim::FabricOptions options;
            options.grain = grain;
            options.queueing = queueing;
            std::vector<Flow> flows = sparse(6, 3000, 60, 3 * kUs, 11);
            const Delivery windows = deliver(machine, flows, options);
            options.scheme = sim::Scheme::heap;
            const Delivery heap = deliver(machine, flows, options);
            EXPECT_EQ(windows.delivered, heap.delivered);
            EXPECT_EQ(windows.completed, heap.completed);
        }
    }
}

TEST_P(BothGrains, a_packet_to_the_same_rail_passes_one_leaf_and_to_another_rail_a_spine) {
    const auto time = [&](std::uint32_t dst) {
        return deliver(small_cluster(4), {{0, dst, 4096}}, options()).delivered[0];
    };
    const Ps nic = 65 * 1280;    // 65 flits of 64 B at 50 GB/s
    const Ps spine = 65 * 1280;  // four spines for four nodes: as fast as a NIC
    EXPECT_EQ(time(8), kStore + 2 * (nic + 600 * kNs) + kWrite);
    EXPECT_EQ(time(9), kStore + 2 * (nic + 600 * kNs) + 2 * (spine + 500 * kNs) + kWrite);
}

/// Loads and stores, answered after very different times, cross each other in the egress.
TEST(Fabric, windows_and_heap_agree_when_a_quick_answer_overtakes_a_slow_one) {
    Machine machine = small_machine(8, 1);
    machine.link.latency = 50 * kNs;
    machine.link.buffer_flits = 10;
    machine.hub = {50 * kNs, 60 * kNs, 5000 * kNs, 8};
    std::vector<Flow> flows = sparse(8, 128, 200, 20 * kUs, 3);
    for (std::size_t i = 0; i < flows.size(); ++i) {
        if (i % 7 != 0) continue;
        flows[i].kind = sim::EventKind::load;
        flows[i].bytes = 14592;
    }
    for (const Grain grain : {Grain::packet, Grain::row}) {
        sim::FabricOptions options;
        options.grain = grain;
        const Delivery windows = deliver(machine, flows, options);
        options.scheme = sim::Scheme::heap;
        EXPECT_EQ(windows.completed, deliver(machine, flows, options).completed);
    }
}

TEST(Fabric, long_headers_are_counted_in_full_in_both_grains) {
    Machine machine = small_machine();
    machine.link.header_flits = 1000;
    machine.link.buffer_flits = 5000;
    sim::FabricOptions options;
    options.grain = Grain::row;
    const Delivery rows = deliver(machine, all_to_all(8, 65536, 2), options);
    const Delivery whole = deliver(machine, all_to_all(8, 65536, 2), packets());
    EXPECT_EQ(rows.up, 8 * 7 * 2 * 512 * (1008 + 1) * 16);
    EXPECT_EQ(rows.up, whole.up);
    EXPECT_NEAR(static_cast<double>(rows.end) / static_cast<double>(whole.end), 1.0, 0.01);
}

TEST(Fabric, windows_and_heap_agree_between_nodes) {
    for (const Grain grain : {Grain::packet, Grain::row}) {
        sim::FabricOptions options;
        options.grain = grain;
        const std::vector<Flow> flows = sparse(16, 10'000, 30, 10 * kUs, 5);
        const Delivery windows = deliver(small_cluster(2), flows, options);
        options.scheme = sim::Scheme::heap;
        EXPECT_EQ(windows.completed, deliver(small_cluster(2), flows, options).completed);
    }
}

TEST_P(BothGrains, traffic_is_counted_once_up_and_once_down_whatever_the_way) {
    for (const NodeTopology topology : {NodeTopology::switched, NodeTopology::mesh}) {
        Machine machine = small_cluster(2);
        machine.topology = topology;
        const Delivery inside = deliver(machine, {{0, 1, 4096}}, options());
        const Delivery between = deliver(machine, {{0, 9, 4096}}, options());
        EXPECT_EQ(inside.up, 32 * 10 * 16);
        EXPECT_EQ(inside.down, inside.up);
        EXPECT_EQ(between.up, (65 + 1) * 64);
        EXPECT_EQ(between.down, between.up);
    }
}

TEST_P(BothGrains, a_mesh_needs_one_hop) {
    Machine machine = small_machine(5);
    machine.topology = NodeTopology::mesh;  // four links, one to each peer
    const Delivery result = deliver(machine, {{0, 3, 128}}, options());
    EXPECT_EQ(result.delivered[0], kStore + kPacket + kHop + kWrite);
    EXPECT_EQ(result.up, result.down);
}

sim::Process wait_for_nothing(sim::Endpoint& gpu) {
    const sim::CounterId counter = gpu.add_counter("tokens from nowhere");
    co_await gpu.until(counter, 3);
}

TEST(Fabric, a_program_that_waits_forever_is_named) {
    sim::Fabric fabric(small_machine(), packets());
    fabric.gpu(6).spawn("lost program", wait_for_nothing(fabric.gpu(6)));
    try {
        fabric.run();
        FAIL() << "no deadlock was reported";
    } catch (const sim::Deadlock& deadlock) {
        EXPECT_STREQ(deadlock.what(),
                     "nothing moves any more, and still waiting are:\n"
                     "  gpu 6: lost program\n"
                     "  gpu 6: waits for tokens from nowhere, has 0 of 3");
    }
}

sim::Process failing(sim::Endpoint& gpu) {
    co_await gpu.delay(5);
    throw std::runtime_error("broken program");
}

TEST(Fabric, what_a_program_throws_reaches_the_caller) {
    sim::Fabric fabric(small_machine(), packets());
    fabric.gpu(0).spawn("bad", failing(fabric.gpu(0)));
    EXPECT_THROW(fabric.run(), std::runtime_error);
}

}  // namespace
}  // namespace moehub::testing::fabric_test
