// Do collectives between nodes send what they say: bytes on NICs and in nodes in closed form, the
// same on clusters alike, as much through rings, trees, chains and rails? Do long calls that are
// simulated in part agree with whole ones?
#include "error_of.hpp"
#include "sim/collective/nccl.hpp"
#include "traffic.hpp"

#include <moehub/collective.hpp>
#include <moehub/presets.hpp>

#include <gtest/gtest.h>

namespace moehub::cluster_collective_test {
namespace {

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;
using testing::deliver;
using testing::Flow;
using testing::small_cluster;

constexpr Bytes kMiB = 1 << 20;

Machine cluster(const std::string& name, int gpus) {
    return with_gpus(load_machine(name), gpus);
}

Collective make(const Machine& machine, Op op, Algorithm algorithm, Bytes bytes) {
    Collective what;
    what.op = op;
    what.algorithm = algorithm;
    what.gpus = machine.gpus();
    what.bytes = bytes;
    return what;
}

double bandwidth(const Machine& machine, Op op, Algorithm algorithm, Bytes bytes) {
    return run_collective(machine, make(machine, op, algorithm, bytes)).bus_bandwidth;
}

/// On the wire, acknowledgements included.
struct Traffic {
    Bytes into_nics = 0;
    Bytes out_of_nics = 0;
    Bytes leaf_to_spine = 0;
    Bytes spine_to_leaf = 0;
    Bytes into_nodes = 0;  ///< GPUs to their node's switches
    Ps end = 0;
};

using Program = std::function<sim::Process(sim::Communicator&, sim::GpuId)>;

sim::Process timed(sim::Communicator& all, sim::GpuId gpu, Program program, Ps& end) {
    co_await program(all, gpu);
    end = std::max(end, all.endpoint(gpu).now());
}

bool starts(const std::string& text, const char* with) {
    return text.rfind(with, 0) == 0;
}

Traffic traffic_of(const Machine& machine, const Program& program, Bytes nic_train = 0) {
    sim::FabricOptions options;
    options.nic_train = nic_train;
    sim::Fabric fabric(machine, options);
    sim::Communicator all(fabric, "a test", false);
    Traffic traffic;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        fabric.gpu(i).spawn("test", timed(all, static_cast<sim::GpuId>(i), program, traffic.end));
    }
    fabric.run();
    for (const LinkUse& link : fabric.links()) {
        const bool from_gpu = starts(link.from, "gpu");
        if (from_gpu && starts(link.to, "leaf")) traffic.into_nics += link.bytes;
        if (from_gpu && starts(link.to, "switch")) traffic.into_nodes += link.bytes;
        if (starts(link.from, "leaf") && starts(link.to, "gpu")) traffic.out_of_nics += link.bytes;
        if (starts(link.from, "leaf") && starts(link.to, "spine"))
            traffic.leaf_to_spine += link.bytes;
        if (starts(link.from, "spine")) traffic.spine_to_leaf += link.bytes;
    }
    return traffic;
}

/// Whole packets of 4 KiB with their header and acknowledgement, all three of flits of 64 B.
Bytes stored_by_nic(Bytes bytes) {
    return bytes / 4096 * (4096 + 64 + 64);
}
/// Whole packets of 128 B with flits of 16 B.
Bytes stored_in_node(Bytes bytes) {
    return bytes / 128 * (128 + 16 + 16);
}

TEST(ClusterCollective, two_nodes_of_any_hopper_run_at_their_nics_rate) {
    const double h200 =
        bandwidth(cluster("h200-cluster", 16), Op::all_to_all, Algorithm::direct, 64 * kMiB);
    const double h800 =
        bandwidth(cluster("h800-cluster", 16), Op::all_to_all, Algorithm::direct, 64 * kMiB);
    EXPECT_DOUBLE_EQ(h200, h800);
    // Half of what a GPU sends leaves its node, 4096 of 4096 + 64 + 64 B are payload.
    EXPECT_NEAR(h200, 2 * 15.0 / 16 * 50e9 * 4096 / 4224, 0.03 * h200);
}

TEST(ClusterCollective, uplinks_that_are_too_few_are_what_binds) {
    Machine machine = cluster("h200-cluster", 32);
    machine.leaf_nodes = 2;
    const auto of = [&](int uplinks) {
        machine.leaf_uplinks = uplinks;
        return bandwidth(machine, Op::all_to_all, Algorithm::direct, 32 * kMiB);
    };
    const double full = of(2);
    EXPECT_NEAR(of(32), full, 0.06 * full);
    // 21 of 24 parts that leave a node go to another rail or unit; one uplink serves two NICs.
    EXPECT_NEAR(of(1), full * 24 / 2 / 21 * 1.0, 0.08 * full);
}

TEST(ClusterCollective, adaptive_routing_spreads_what_hashing_sends_one_way) {
    Machine machine = small_cluster(4);
    machine.leaf_nodes = 2;
    machine.leaf_uplinks = 4;
    const auto node = static_cast<std::uint32_t>(machine.gpus_per_node);
    const std::vector<Flow> flows = {{0, 3 * node, 4 * kMiB}, {node, 2 * node, 4 * kMiB}};
    const double hashed = to_us(deliver(machine, flows, {}).end);
    machine.adaptive_routing = true;
    const double adaptive = to_us(deliver(machine, flows, {}).end);
    const double alone = to_us(deliver(machine, {flows[0]}, {}).end);
    EXPECT_NEAR(adaptive, alone, 0.02 * alone);
    EXPECT_NEAR(hashed, 2 * alone, 0.1 * alone);
}

TEST(ClusterCollective, rings_send_all_but_one_part_out_of_every_node) {
    const Machine machine = cluster("h100-cluster", 32);
    const Bytes bytes = 32 * 8 * 8192 * 4;  // parts of 32 KiB on each of 8 rings, in halves
    for (const Op op : {Op::all_gather, Op::all_reduce}) {
        sim::NcclCall call{op, bytes};
        const Traffic traffic = traffic_of(machine, [=](sim::Communicator& all, sim::GpuId gpu) {
            return protocol_ring(all, gpu, call);
        });
        const Bytes rounds = op == Op::all_reduce ? 2 : 1;
        EXPECT_EQ(traffic.into_nics, rounds * 4 * stored_by_nic(bytes / 32 * 31));
        EXPECT_EQ(traffic.out_of_nics, traffic.into_nics);
        EXPECT_EQ(traffic.into_nodes, rounds * 28 * stored_in_node(bytes / 32 * 31));
        // Same rail, same unit, but for the way from the last node back to the first.
        EXPECT_EQ(traffic.leaf_to_spine, rounds * stored_by_nic(bytes / 32 * 31));
    }
}

TEST(ClusterCollective, trees_send_every_part_up_and_down_once) {
    for (const int nodes : {2, 3, 5, 8}) {
        const Machine machine = cluster("h100-cluster", 8 * nodes);
        const Bytes bytes = 8 * 4 * kMiB;
        const Traffic traffic = traffic_of(machine, [=](sim::Communicator& all, sim::GpuId gpu) {
            return nvls_tree(all, gpu, bytes, 0);
        });
        EXPECT_EQ(traffic.into_nics, 2 * (nodes - 1) * stored_by_nic(bytes)) << nodes;
        EXPECT_EQ(traffic.out_of_nics, traffic.into_nics);
    }
}

TEST(ClusterCollective, a_network_that_adds_up_takes_and_gives_each_part_once) {
    for (const int nodes : {2, 4}) {
        Machine machine = cluster("h100-cluster", 8 * nodes);
        const Bytes bytes = 8 * 4 * kMiB;
        const auto chain = [=](sim::Communicator& all, sim::GpuId gpu) {
            return collnet_chain(all, gpu, bytes);
        };
        const Bytes part = bytes / 4096 * (4096 + 64);  // answered by the sum, not acknowledged
        const Traffic one = traffic_of(machine, chain);
        EXPECT_EQ(one.into_nics, nodes * part);
        EXPECT_EQ(one.out_of_nics, nodes * part);
        EXPECT_EQ(one.leaf_to_spine, 0);
        EXPECT_EQ(one.into_nodes, nodes * 2 * 7 * stored_in_node(bytes));
        machine.leaf_nodes = 1;  // each leaf sends its sum to a spine and has that of all back
        const Traffic spread = traffic_of(machine, chain);
        EXPECT_EQ(spread.into_nics, nodes * part);
        EXPECT_EQ(spread.leaf_to_spine, nodes * part);
        EXPECT_EQ(spread.spine_to_leaf, nodes * part);
    }
}

TEST(ClusterCollective, sends_by_rail_cross_no_spine_and_nvlink_twice) {
    const Machine machine = cluster("h100-cluster", 32);
    const Bytes part = 64 * 4096;
    const Traffic traffic = traffic_of(machine, [=](sim::Communicator& all, sim::GpuId gpu) {
        return sends_by_rail(all, gpu, 32 * part);
    });
    EXPECT_EQ(traffic.into_nics, 32 * stored_by_nic(24 * part));
    EXPECT_EQ(traffic.out_of_nics, traffic.into_nics);
    EXPECT_EQ(traffic.leaf_to_spine, 0);
    EXPECT_EQ(traffic.into_nodes, 32 * stored_in_node((7 + 7 * 24 / 8) * part));
}

TEST(ClusterCollective, nics_that_send_several_packets_as_one_take_as_long) {
    const Machine machine = cluster("h100-cluster", 16);
    const auto sends = [](sim::Communicator& all, sim::GpuId gpu) {
        return sends_by_rail(all, gpu, 32 * kMiB);
    };
    const Traffic packets = traffic_of(machine, sends);
    const Traffic trains = traffic_of(machine, sends, 16384);
    EXPECT_EQ(trains.into_nics, packets.into_nics);
    EXPECT_NEAR(to_us(trains.end), to_us(packets.end), 0.01 * to_us(packets.end));
}

TEST(ClusterCollective, a_part_of_a_long_call_tells_the_whole) {
    const Machine machine = cluster("h100-cluster", 40);
    const auto part =
        run_collective(machine, make(machine, Op::all_reduce, Algorithm::collnet, 2048 * kMiB));
    EXPECT_EQ(part.part, "16 of 32 waves");
    EXPECT_EQ(part.bytes_up,
              5 * (2 * 7 * stored_in_node(2048 * kMiB) + 2048 * kMiB / 4096 * (4096 + 64)));
    const Machine racks = cluster("gb200-cluster", 1440);
    const auto ring = run_collective(
        racks, make(racks, Op::all_gather, Algorithm::automatic, Bytes{1440} * 15 * 3840));
    EXPECT_EQ(ring.part, "72 of 1439 steps on 2 of 20 nodes");
    // Parts of 3840 B are 7680 by LL: 60 packets of 128 B, or two of 4 KiB, where a node ends.
    const double near = 60.0 * (128 + 16 + 16);
    const double far = 7680 + 2 * (64 + 64);
    const double all = 1440.0 * 15 * 1439 * (71 * near + far) / 72;
    EXPECT_NEAR(static_cast<double>(ring.bytes_up), all, 0.001 * all);
}

TEST(ClusterCollective, a_long_ring_of_small_nodes_is_not_faster_than_its_nics) {
    const Machine machine = cluster("h100-cluster", 1024);
    const auto ring = run_collective(
        machine, make(machine, Op::reduce_scatter, Algorithm::automatic, 16384 * kMiB));
    EXPECT_EQ(ring.part, "64 of 1023 steps on 9 of 128 nodes");
    EXPECT_LT(ring.bus_bandwidth, 8 * machine.nic.bandwidth);
    EXPECT_GT(ring.bus_bandwidth, 0.45 * 8 * machine.nic.bandwidth);
}

TEST(ClusterCollective, auto_chooses_as_nccl_does) {
    const auto chosen = [](const char* name, int gpus, Op op, Bytes bytes) {
        const Machine machine = cluster(name, gpus);
        const auto call = sim::NcclCall{op, bytes};
        return name_of(sim::choose(machine, static_cast<std::uint32_t>(gpus), call), op, true);
    };
    EXPECT_EQ(chosen("h200-cluster", 16, Op::all_reduce, 1024 * kMiB), "nvls-tree");
    EXPECT_EQ(chosen("h200-cluster", 16, Op::all_gather, 1024 * kMiB), "ring, Simple");
    EXPECT_EQ(chosen("h200-cluster", 16, Op::all_gather, kMiB), "ring, LL");
    EXPECT_EQ(chosen("gb200-cluster", 1440, Op::all_reduce, 1024 * kMiB), "ring, LL128");
    EXPECT_EQ(chosen("h200-cluster", 16, Op::all_to_all, 1024 * kMiB), "sends by rail");
}

TEST(ClusterCollective, machines_that_cannot_say_what_they_need) {
    const Machine ascend = cluster("ascend-910b-cluster", 16);
    EXPECT_EQ(error_of([&] {
                  run_collective(ascend, make(ascend, Op::all_reduce, Algorithm::collnet, kMiB));
              }),
              "ascend-910b-cluster cannot run collnet: it needs sharp = true (leaves and spines "
              "that add up) and two nodes or more, of several GPUs each");
    EXPECT_EQ(error_of([&] {
                  run_collective(ascend, make(ascend, Op::all_reduce, Algorithm::nvls_tree, kMiB));
              }),
              "ascend-910b-cluster cannot run nvls-tree: it needs two nodes or more, of several "
              "GPUs each, whose switches multicast and reduce");
    const Machine hopper = cluster("h100-cluster", 16);
    EXPECT_EQ(error_of([&] {
                  run_collective(hopper, make(hopper, Op::all_gather, Algorithm::collnet, kMiB));
              }),
              "collnet is an algorithm of all_reduce only");
    EXPECT_EQ(error_of([] { load_machine("dgx-h100", {"sharp=true"}); }),
              "--set: sharp: found true, allowed false with nic.bandwidth = 0 B/s");
}

}  // namespace
}  // namespace moehub::cluster_collective_test
