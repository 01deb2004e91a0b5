// Do trains of packets (row grain) arrive when their packets would (packet grain)?
#include "traffic.hpp"

#include <ostream>

#include <gtest/gtest.h>

namespace moehub::testing::grain_test {
namespace {

struct Case {
    const char* name;
    Machine machine;
    std::vector<Flow> flows;
};
void PrintTo(const Case& test, std::ostream* out) {
    *out << test.name;
}

Machine tight() {
    Machine machine = small_machine();
    machine.link.buffer_flits = 9;
    return machine;
}

/// Rows of 8 KiB that keep every GPU's links busy for the given share of the time.
std::vector<Flow> random_rows(std::uint32_t gpus, double load, std::uint32_t seed) {
    const int rows = 300;
    const double bytes_per_ps = 0.64 * 8 / 10;
    return sparse(gpus, 8192, rows, static_cast<Ps>(rows * 8192 / bytes_per_ps / load), seed);
}

/// Every GPU sends to the next: a step of a ring.
std::vector<Flow> ring_step(std::uint32_t gpus, Bytes row, int rows) {
    std::vector<Flow> flows;
    for (std::uint32_t src = 0; src < gpus; ++src) {
        for (int i = 0; i < rows; ++i) flows.push_back({src, (src + 1) % gpus, row});
    }
    return flows;
}

std::vector<Case> cases() {
    Machine mesh = small_machine();
    mesh.topology = NodeTopology::mesh;
    return {
        {"all_to_all_8K", small_machine(), all_to_all(8, 8192, 40)},
        {"all_to_all_64K", small_machine(), all_to_all(8, 65536, 20)},
        {"all_to_all_1K", small_machine(), all_to_all(8, 1024, 200)},
        {"all_to_all_odd_rows", small_machine(), all_to_all(8, 5000, 60)},
        {"all_to_all_32_gpus_9_switches", small_machine(32, 9), all_to_all(32, 14336, 12)},
        {"all_to_all_small_buffers", tight(), all_to_all(8, 8192, 40)},
        {"all_to_all_cluster", small_cluster(3), all_to_all(24, 8192, 10)},
        {"all_to_all_mesh", mesh, all_to_all(8, 8192, 40)},
        {"ring_step_64K", small_machine(), ring_step(8, 65536, 100)},
        {"ring_step_8K_small_buffers", tight(), ring_step(8, 8192, 400)},
        {"incast_8K", small_machine(), incast(8, 8192, 50)},
        {"incast_64K", small_machine(), incast(8, 65536, 10)},
        {"incast_small_buffers", tight(), incast(8, 8192, 50)},
        {"incast_cluster", small_cluster(3), incast(24, 8192, 20)},
        {"sparse_20_percent", small_machine(), random_rows(8, 0.2, 1)},
        {"sparse_50_percent", small_machine(), random_rows(8, 0.5, 2)},
        {"sparse_80_percent", small_machine(), random_rows(8, 0.8, 3)},
        {"sparse_small_buffers", tight(), random_rows(8, 0.8, 4)},
        {"sparse_32_gpus_9_switches", small_machine(32, 9), random_rows(32, 0.4, 5)},
    };
}

class Grains : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Traffic, Grains, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

double ratio(Ps a, Ps b) {
    return static_cast<double>(a) / static_cast<double>(b);
}

TEST_P(Grains, agree) {
    const Case& test = GetParam();
    sim::FabricOptions options;
    options.grain = Grain::packet;
    const Delivery packets = deliver(test.machine, test.flows, options);
    options.grain = Grain::row;
    const Delivery rows = deliver(test.machine, test.flows, options);
    EXPECT_NEAR(ratio(rows.end, packets.end), 1.0, 0.01);
    EXPECT_NEAR(ratio(percentile(rows.delivered, 0.99), percentile(packets.delivered, 0.99)), 1.0,
                0.03);
    EXPECT_EQ(rows.received, packets.received);
    EXPECT_EQ(rows.up, packets.up);
    EXPECT_EQ(rows.down, packets.down);
}

}  // namespace
}  // namespace moehub::testing::grain_test
