// On random machines and traffic: do the schemes agree exactly, and the grains closely?
#include "traffic.hpp"

#include <gtest/gtest.h>

namespace moehub::testing::random_fabric_test {
namespace {

struct Random {
    std::mt19937 engine;
    int pick(std::initializer_list<int> values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(engine() % values.size()));
    }
};

Machine random_machine(Random& random) {
    const int gpus = random.pick({2, 4, 8, 16});
    Machine machine = small_machine(gpus, random.pick({1, 2, 4, 6}));
    if (random.pick({0, 0, 1}) == 1) {
        machine = small_cluster(random.pick({2, 3}));
        machine.spines = random.pick({0, 2, 4});
        machine.leaf_nodes = random.pick({0, 1, 2});
        machine.leaf_uplinks = random.pick({0, 1, 3, 4});
        machine.adaptive_routing = random.pick({0, 1}) == 1;
        machine.nic.request_channels = random.pick({1, 8});
    }
    if (random.pick({0, 0, 0, 1}) == 1) machine.topology = NodeTopology::mesh;
    machine.link.buffer_flits = random.pick({10, 64, 256});
    machine.link.request_channels = random.pick({1, 2, 8});
    machine.link.credit_flits = random.pick({0, 1});
    return machine;
}

/// Stores, and with `mixed` loads and atomics among them.
std::vector<Flow> random_flows(Random& random, const Machine& machine, bool mixed) {
    const auto gpus = static_cast<std::uint32_t>(machine.gpus());
    const Bytes row = random.pick({1024, 5000, 8192, 14336, 65536});
    const double load = random.pick({3, 6, 9}) / 10.0;
    const double rate = (machine.nodes > 1 ? machine.nic : machine.link).bandwidth * 0.8e-12;
    const int rows = 60;
    std::vector<Flow> flows;
    switch (random.pick({0, 1, 2, 2})) {
        case 0:
            flows = all_to_all(gpus, row, 8);
            break;
        case 1:
            flows = incast(gpus, row, rows);
            break;
        default:
            flows = sparse(gpus, row, rows,
                           static_cast<Ps>(rows * static_cast<double>(row) / rate / load),
                           static_cast<std::uint32_t>(random.engine()));
    }
    for (Flow& flow : flows) {
        if (!mixed) continue;
        const int kind = random.pick({0, 1, 2});
        flow.kind = kind == 0   ? sim::EventKind::store
                    : kind == 1 ? sim::EventKind::load
                                : sim::EventKind::atomic;
    }
    return flows;
}

class RandomFabric : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomFabric, ::testing::Range(0, 40));

TEST_P(RandomFabric, schemes_agree_exactly_and_grains_closely) {
    Random random{std::mt19937(static_cast<std::uint32_t>(GetParam()))};
    const Machine machine = random_machine(random);
    const bool mixed = GetParam() % 2 == 1;
    const std::vector<Flow> flows = random_flows(random, machine, mixed);
    sim::FabricOptions options;
    const int queueing = mixed ? random.pick({0, 1, 2}) : random.pick({0, 2});
    options.queueing = static_cast<sim::Queueing>(queueing);
    Delivery grains[2];
    for (const Grain grain : {Grain::packet, Grain::row}) {
        options.grain = grain;
        options.scheme = sim::Scheme::windows;
        const Delivery windows = deliver(machine, flows, options);
        options.scheme = sim::Scheme::heap;
        const Delivery heap = deliver(machine, flows, options);
        EXPECT_EQ(windows.delivered, heap.delivered);
        EXPECT_EQ(windows.completed, heap.completed);
        grains[grain == Grain::row ? 1 : 0] = windows;
    }
    EXPECT_EQ(grains[0].received, grains[1].received);
    EXPECT_EQ(grains[0].up, grains[1].up);
    EXPECT_EQ(grains[0].down, grains[1].down);
    EXPECT_EQ(grains[0].up, grains[0].down);
    const double ratio = static_cast<double>(grains[1].end) / static_cast<double>(grains[0].end);
    RecordProperty("row_over_packet", std::to_string(ratio));
    EXPECT_NEAR(ratio, 1.0, mixed ? 0.07 : 0.01)
        << machine.gpus() << " GPUs, " << machine.switches << " switches, " << machine.nodes
        << " nodes, queueing " << queueing;
}

}  // namespace
}  // namespace moehub::testing::random_fabric_test
