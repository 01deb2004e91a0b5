// What does a training step's communication take: do tables agree with closed forms, with exact
// simulations and with each other, whoever asks first?
#include "plan/communication.hpp"
#include "plan/simulated.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace moehub::plan_communication_test {
namespace {

using Op = Collective::Op;

constexpr double kMiB = 1 << 20;

Machine cluster(const std::string& name, int nodes) {
    Machine machine = load_machine(name);
    machine.nodes = nodes;
    return machine;
}

/// Small, so that layers are simulated quickly.
Model small_model() {
    Model model = load_model("qwen3-30b-a3b");
    model.experts = 16;
    model.top_k = 2;
    return model;
}

/// Two nodes of two GPUs, likewise.
Machine small_cluster() {
    Machine machine = cluster("h100-cluster", 2);
    machine.gpus_per_node = 2;
    return machine;
}

Communication on(const Machine& machine) {
    return Communication(machine, small_model(), {RoutingSpec::Shares::balanced});
}

MoeCase layer_of(int ep, std::int64_t tokens) {
    MoeCase one;
    one.system = "deepep";
    one.ep = ep;
    one.tokens = tokens;
    return one;
}

TEST(PlanGroups, members_of_a_node_follow_from_the_stride) {
    const Machine machine = cluster("h100-cluster", 16);
    EXPECT_EQ(shape_of(machine, {8, 1}), (GroupShape{8, 1}));
    EXPECT_EQ(shape_of(machine, {32, 1}), (GroupShape{8, 4}));
    EXPECT_EQ(shape_of(machine, {32, 4}), (GroupShape{2, 16}));
    EXPECT_EQ(shape_of(machine, {16, 8}), (GroupShape{1, 16}));
    EXPECT_EQ(shape_of(machine, {2, 64}), (GroupShape{1, 2}));
    EXPECT_EQ(shape_of(machine, {12, 1}), (GroupShape{6, 2})) << "nodes are alike";
    EXPECT_THROW(shape_of(machine, {0, 1}), InputError);
    const Machine rack = cluster("gb200-cluster", 1);
    EXPECT_EQ(shape_of(rack, {9, 8}), (GroupShape{9, 1}));
}

TEST(PlanGroups, part_of_a_mesh_has_part_of_its_links) {
    const Machine machine = cluster("ascend-910b-cluster", 2);
    const Machine part = machine_of(machine, {2, 1});
    EXPECT_DOUBLE_EQ(part.link.bandwidth, machine.link.bandwidth / 7);
    EXPECT_DOUBLE_EQ(machine_of(machine, {8, 2}).link.bandwidth, machine.link.bandwidth);
}

TEST(PlanSizeTable, never_falls_and_goes_on_as_it_ends) {
    std::atomic<int> asked = 0;
    SizeTable table(
        [&](Bytes bytes) {
            ++asked;
            const auto size = static_cast<double>(bytes);
            return bytes == 4 << 20 ? 1e-6 : 1e-5 + size * 1e-11;  // a dent at 4 MiB
        },
        100 * kMiB);
    EXPECT_DOUBLE_EQ(table.at(0), 0);
    EXPECT_EQ(asked, 0) << "nothing is simulated before it is needed";
    double last = 0;
    for (double bytes = 1; bytes < 1e12; bytes *= 1.3) {
        EXPECT_GE(table.at(bytes), last) << bytes;
        last = table.at(bytes);
    }
    EXPECT_EQ(asked, 8) << "64 KiB, 1, 4, 8, 16, 32, 64, 128 MiB";
    EXPECT_NEAR(table.at(1e12), 10, 0.01);
}

/// Payload of parallel links that carry as much the other way: beside each packet its header, an
/// acknowledgement of one that came, and on each link a credit update every 16 ns.
double wire_rate(const LinkSpec& link, int links = 1) {
    const auto flit = static_cast<double>(link.flit);
    const double flits = static_cast<double>(link.payload) / flit;
    const double updates = links * link.credit_flits * flit / 16e-9;
    return (link.bandwidth - updates) * flits / (flits + link.header_flits + link.ack_flits);
}

TEST(PlanCollectives, large_ones_take_their_bytes_over_the_slowest_rate) {
    struct Case {
        const char* machine;
        GpuGroup group;
        double nics;    ///< NICs of a GPU that count, on the bus; 0: NVLink
        double beyond;  ///< launches, steps, filling, emptying: share of the wire's time
    };
    // Rings over NICs of all members, NVLink, and a mesh's direct sends. 8 members of a node have 8
    // NICs, and what passes one NIC passes it once.
    const std::vector<Case> cases = {
        {"h100-cluster", {16, 8}, 1, 0.01},        {"h100-cluster", {32, 1}, 8, 0.03},
        {"h100-cluster", {32, 4}, 2, 0.01},        {"h100-cluster", {8, 1}, 0, 0.08},
        {"ascend-910b-cluster", {16, 8}, 1, 0.01},
    };
    for (const auto& [name, group, nics, beyond] : cases) {
        const Machine machine = cluster(name, 16);
        Communication all = on(machine);
        const double bytes = 1024 * kMiB;
        const double n = group.size;
        const double time = all.collective(Op::reduce_scatter, group, bytes);
        const double rate =
            nics > 0 ? nics * wire_rate(machine.nic) : wire_rate(machine.link, machine.switches);
        const double wire = bytes * (n - 1) / n / rate;
        EXPECT_GT(time, wire) << name << " " << group.size;
        EXPECT_LT(time, (1 + beyond) * wire) << name << " " << group.size;
        EXPECT_EQ(time, all.collective(Op::all_gather, group, bytes));
    }
}

TEST(PlanCollectives, an_all_reduce_carries_twice) {
    const Machine machine = cluster("h100-cluster", 16);
    Communication all = on(machine);
    const double bytes = 256 * kMiB;
    const double time = all.collective(Op::all_reduce, {16, 8}, bytes);
    const double wire = 2 * bytes * 15 / 16 / wire_rate(machine.nic);
    EXPECT_GT(time, wire);
    EXPECT_LT(time, 1.03 * wire);
    Communication mesh = on(cluster("ascend-910b-cluster", 4));
    const GpuGroup nodes{32, 1};
    EXPECT_NEAR(mesh.collective(Op::all_reduce, nodes, bytes) /
                    mesh.collective(Op::all_gather, nodes, bytes),
                2, 1e-6);
}

TEST(PlanCollectives, a_mesh_gathers_inside_nodes_then_between) {
    const Machine machine = cluster("ascend-910b-cluster", 16);
    Communication all = on(machine);
    const double bytes = 1024 * kMiB;
    const double inside = all.collective(Op::all_gather, {8, 1}, bytes);
    const double between = all.collective(Op::all_gather, {16, 8}, bytes / 8);
    EXPECT_NEAR(all.collective(Op::all_gather, {128, 1}, bytes) / (inside + between), 1, 1e-6);
    const double links = bytes * 7 / 8 / wire_rate(machine.link, 7);
    const double nics = bytes / 8 * 15 / 16 / wire_rate(machine.nic);
    EXPECT_GT(inside, links);
    EXPECT_LT(inside, 1.003 * links);
    EXPECT_GT(between, nics);
    EXPECT_LT(between, 1.03 * nics);
}

TEST(PlanCollectives, a_group_of_one_and_no_bytes_take_nothing) {
    Communication all = on(cluster("h100-cluster", 2));
    for (const Op op : {Op::all_gather, Op::reduce_scatter, Op::all_reduce, Op::all_to_all}) {
        EXPECT_EQ(all.collective(op, {1, 8}, 1e9), 0);
        EXPECT_EQ(all.collective(op, {8, 1}, 0), 0);
        EXPECT_EQ(all.collective(op, {1, 1}, 1e9, true), 0);
    }
    EXPECT_EQ(all.message(8, 0), 0);
}

TEST(PlanCollectives, more_bytes_never_take_less) {
    Communication all = on(cluster("h100-cluster", 16));
    for (const Op op : {Op::reduce_scatter, Op::all_reduce, Op::all_to_all}) {
        for (const GpuGroup group : {GpuGroup{4, 1}, GpuGroup{4, 4}, GpuGroup{16, 8}}) {
            double last = 0;
            for (double bytes = 1e3; bytes < 2e8; bytes *= 1.7) {
                const double time = all.collective(op, group, bytes);
                EXPECT_GE(time, last) << bytes;
                last = time;
            }
        }
    }
}

TEST(PlanCollectives, more_bandwidth_is_never_slower) {
    Machine machine = cluster("h100-cluster", 16);
    Communication slow = on(machine);
    machine.nic.bandwidth *= 2;
    Communication nics = on(machine);
    machine.link.bandwidth *= 2;
    Communication both = on(machine);
    for (const GpuGroup group : {GpuGroup{8, 1}, GpuGroup{16, 8}, GpuGroup{16, 1}}) {
        for (const double bytes : {1e5, 1e7, 2e8}) {
            const auto time = [&](Communication& all) {
                return all.collective(Op::reduce_scatter, group, bytes);
            };
            EXPECT_LE(time(nics), time(slow) * 1.005) << group.size << " " << bytes;
            EXPECT_LE(time(both), time(nics) * 1.005) << group.size << " " << bytes;
        }
    }
}

TEST(PlanCollectives, tables_are_near_what_is_simulated_exactly) {
    Communication all = on(cluster("h100-cluster", 64));
    for (const GpuGroup group :
         {GpuGroup{8, 1}, GpuGroup{4, 1}, GpuGroup{16, 4}, GpuGroup{16, 8}}) {
        for (const double bytes : {30e6, 150e6, 700e6}) {
            const double table = all.collective(Op::all_gather, group, bytes);
            const double exact = all.collective(Op::all_gather, group, bytes, true);
            EXPECT_NEAR(table / exact, 1, bytes > 1e8 ? 2e-4 : 0.03)
                << group.size << " of " << bytes;
        }
    }
}

TEST(PlanCollectives, large_groups_follow_from_small_ones) {
    // 8 nodes are simulated, 9 are counted on: the ring grows by a step.
    Communication all = on(cluster("h100-cluster", 16));
    const double part = 4 * kMiB;
    const double eight = all.collective(Op::all_gather, {8, 8}, 8 * part, true);
    const double nine = all.collective(Op::all_gather, {9, 8}, 9 * part, true);
    const double seven = all.collective(Op::all_gather, {7, 8}, 7 * part, true);
    EXPECT_NEAR((nine - eight) / (eight - seven), 1, 1e-4);
}

TEST(PlanCollectives, thousands_of_gpus_are_limited_by_their_nics) {
    const Machine machine = cluster("h100-cluster", 256);
    Communication all = on(machine);
    const double bytes = 64 * 1024 * kMiB;
    const double wire = bytes / (8 * wire_rate(machine.nic));
    const double time = all.collective(Op::reduce_scatter, {2048, 1}, bytes);
    EXPECT_GT(time, wire * 2047 / 2048);
    EXPECT_LT(time, 1.03 * wire);
}

TEST(PlanMessages, take_nvlink_inside_a_node_and_nics_between) {
    const double bytes = 256 * kMiB;
    Communication node = on(cluster("h100-cluster", 1));
    Communication nodes = on(cluster("h100-cluster", 4));
    const double near = node.message(4, bytes);
    const Machine machine = cluster("h100-cluster", 4);
    const double far = nodes.message(8, bytes);
    EXPECT_GT(far, bytes / wire_rate(machine.nic));
    EXPECT_LT(far, 1.01 * bytes / wire_rate(machine.nic));
    EXPECT_NEAR(near * 320e9 / bytes, 1, 0.15);
    EXPECT_DOUBLE_EQ(nodes.message(16, bytes), far);
    EXPECT_NEAR(nodes.message(4, bytes), (near + far) / 2, 1e-9) << "half of the GPUs' leave";
    EXPECT_NEAR(nodes.message(8, 1e8) / nodes.message(8, 1e8, true), 1, 1e-3);
}

TEST(PlanMoe, nothing_travels_among_one) {
    Communication all = on(small_cluster());
    EXPECT_EQ(all.moe(layer_of(1, 4096)).exposed, 0);
    EXPECT_EQ(all.moe(layer_of(2, 0)).exposed, 0);
}

TEST(PlanMoe, grows_with_tokens_and_nodes) {
    Communication all = on(small_cluster());
    for (const Pass pass : {Pass::forward, Pass::backward}) {
        double last = 0;
        for (const std::int64_t tokens : {1, 64, 512, 2048, 16384}) {
            MoeCase one = layer_of(2, tokens);
            one.pass = pass;
            const MoeCommunication found = all.moe(one);
            EXPECT_GE(found.exposed, last);
            EXPECT_GE(found.alone, 0);
            EXPECT_EQ(found.sms, 24);
            last = found.exposed;
        }
        EXPECT_GT(last, 0);
    }
    EXPECT_GT(all.moe(layer_of(4, 4096)).exposed, all.moe(layer_of(2, 4096)).exposed);
}

TEST(PlanMoe, tables_are_near_what_is_simulated_exactly) {
    Communication all = on(small_cluster());
    for (const int ep : {2, 4}) {
        const MoeCase one = layer_of(ep, 2500);
        const MoeCommunication table = all.moe(one);
        const MoeCommunication exact = all.moe(one, true);
        EXPECT_NEAR(table.alone / exact.alone, 1, 0.05) << ep;
        EXPECT_NEAR(table.exposed / exact.exposed, 1, 0.02) << ep;
    }
}

TEST(PlanMoe, what_a_system_cannot_run_is_said_every_time) {
    Communication all = on(small_cluster());
    MoeCase shared = layer_of(2, 64);
    shared.etp = 2;  // deepep's experts are whole
    for (int i = 0; i < 2; ++i) EXPECT_THROW(all.moe(shared), InputError);
    shared.system = "megatron-te";
    EXPECT_GT(all.moe(shared).exposed, 0);
}

/// What a search asks, in some order.
std::vector<double> answers(Communication& all, int first) {
    constexpr int kQuestions = 8;
    std::vector<double> found(kQuestions);
    for (int i = 0; i < kQuestions; ++i) {
        const int which = (first + i) % kQuestions;
        double& answer = found[static_cast<std::size_t>(which)];
        const double bytes = which % 2 == 0 ? 3e6 : 1e8;
        if (which < 4)
            answer = all.collective(Op::all_gather, {which < 2 ? 8 : 4, 1}, bytes);
        else if (which < 6)
            answer = all.message(8, bytes);
        else
            answer = all.moe(layer_of(2, 100 * which)).exposed;
    }
    return found;
}

TEST(PlanCommunication, threads_find_the_same_whoever_asks_first) {
    const Machine machine = cluster("h100-cluster", 2);
    Communication alone = on(machine);
    const std::vector<double> expected = answers(alone, 0);
    Communication shared = on(machine);
    std::vector<std::vector<double>> found(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < found.size(); ++i)
        threads.emplace_back([&, i] { found[i] = answers(shared, static_cast<int>(3 * i)); });
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<double>& one : found) EXPECT_EQ(one, expected);
}

}  // namespace
}  // namespace moehub::plan_communication_test
