// Does a switch copy to exactly the GPUs of a group, gather what belongs together, add what passes
// it, and go on when its buffer is full? Both grains, both schemes.
#include "grains.hpp"
#include "sim/hub/hub.hpp"
#include "traffic.hpp"

#include <gtest/gtest.h>

namespace moehub::testing::switch_test {
namespace {

using sim::GpuId;

// small_machine(): a flit takes 100 ps on one of four links; a multicast packet has 10 flits.
constexpr Ps kStore = 150 * kNs, kHop = 250 * kNs, kWrite = 400 * kNs;

/// One row per GPU of the node, its sums on all of them.
constexpr Bytes kRow = 1024;
constexpr Bytes kLine = 128;

struct Bench {
    explicit Bench(const Machine& machine, sim::FabricOptions options) : fabric(machine, options) {
        for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(machine.gpus()); ++i) {
            hubs.emplace_back(fabric.gpu(i), machine,
                              sim::Hub::Options{0, static_cast<std::size_t>(kRow / kLine), kLine});
            partials = hubs.back().add_sums({0, machine.gpus()}, kRow);
            totals = hubs.back().add_sums({0, machine.gpus()}, kRow);
            done = fabric.gpu(i).add_counter("done");
            arrived = fabric.gpu(i).add_counter("arrived");
        }
    }
    sim::Fabric fabric;
    std::deque<sim::Hub> hubs;
    sim::RegionId partials = 0;
    sim::RegionId totals = 0;
    sim::CounterId done = 0;
    sim::CounterId arrived = 0;
};

std::uint64_t identity(std::uint32_t gpu, std::uint32_t row) {
    return 1 + gpu + 1000 * row;
}

/// Every member's partial of every row: the number of line l is (gpu + 1) · (row + 1) + l.
void fill_partials(Bench& bench, const std::vector<GpuId>& members) {
    for (const GpuId gpu : members) {
        for (std::uint32_t row = 0; row < bench.hubs.size(); ++row) {
            std::vector<double> numbers(kRow / kLine);
            for (std::size_t l = 0; l < numbers.size(); ++l)
                numbers[l] = (gpu + 1.0) * (row + 1.0) + static_cast<double>(l);
            bench.hubs[gpu].sums(bench.partials).add_row(row, identity(gpu, row), numbers.data());
        }
    }
}

sim::Process reduce(Bench& bench, GpuId gpu, std::vector<GpuId> members, std::uint32_t row,
                    Ps start = 0) {
    sim::Endpoint& endpoint = bench.fabric.gpu(gpu);
    co_await endpoint.delay(start);
    sim::Transfer load;
    load.kind = sim::EventKind::load;
    load.group = bench.fabric.groups().add(members);
    load.bytes = kRow;
    load.address = row * static_cast<std::uint64_t>(kRow);
    load.answered = bench.done;
    load.target.region = bench.partials;
    load.target.row = row;
    load.target.into = bench.totals;
    endpoint.post(load);
    co_await endpoint.until(bench.done, 1);
}

void expect_total(Bench& bench, GpuId gpu, const std::vector<GpuId>& members, std::uint32_t row) {
    const sim::RowSums& totals = bench.hubs[gpu].sums(bench.totals);
    std::uint64_t all = 0;
    double factor = 0;
    for (const GpuId member : members) {
        all += identity(member, row);
        factor += member + 1.0;
    }
    ASSERT_TRUE(totals.complete(row, static_cast<std::uint32_t>(members.size())));
    EXPECT_EQ(totals.identity(row), totals.whole() * all);
    for (std::size_t l = 0; l < totals.lines(); ++l) {
        const double want = factor * (row + 1.0) + static_cast<double>(l * members.size());
        EXPECT_EQ(totals.numbers(row)[l], want);
    }
}

class Switches : public InGrain {};
IN_BOTH_GRAINS(Switches);

sim::Process multicast(Bench& bench, GpuId gpu, std::vector<GpuId> members, Bytes bytes) {
    sim::Transfer store;
    store.group = bench.fabric.groups().add(std::move(members));
    store.bytes = bytes;
    store.address = 0;
    store.arrived = bench.arrived;
    store.answered = bench.done;
    bench.fabric.gpu(gpu).post(store);
    co_await bench.fabric.gpu(gpu).until(bench.done, 1);
}

TEST_P(Switches, copy_to_the_gpus_of_a_list_and_to_no_others) {
    Bench bench(small_machine(), options());
    bench.fabric.gpu(2).spawn("sender", multicast(bench, 2, {1, 4, 7}, 128));
    bench.fabric.run();
    // Up: one packet of 10 flits and its merged answer's parts; down: three copies, one answer.
    EXPECT_EQ(bench.fabric.wire_bytes_up(), (10 + 3) * 16);
    EXPECT_EQ(bench.fabric.wire_bytes_down(), (3 * 10 + 1) * 16);
    EXPECT_EQ(bench.fabric.payload_received(), 3 * 128);
    EXPECT_EQ(bench.fabric.transfer(0).delivered_at, kStore + 2 * (1000 + kHop) + kWrite);
}

/// The counter of every member, each at its own time, whatever the order of components.
sim::Process note_arrival(Bench& bench, GpuId gpu, std::vector<Ps>& times) {
    co_await bench.fabric.gpu(gpu).until(bench.arrived, 1);
    times[gpu] = bench.fabric.gpu(gpu).now();
}

std::vector<Ps> arrivals(sim::FabricOptions options, GpuId sender, GpuId busy) {
    Bench bench(small_machine(), options);
    std::vector<Ps> times(8);
    for (std::uint32_t i = 0; i < 8; ++i) {
        const auto gpu = static_cast<GpuId>(i);
        bench.fabric.gpu(gpu).spawn("watch", note_arrival(bench, gpu, times));
    }
    // One member's link is busy with something else, so its copy is last.
    sim::Transfer store;
    store.dst = busy;
    store.bytes = 65536;
    bench.fabric.gpu(sender == 3 ? 4 : 3).post(store);
    bench.fabric.gpu(sender).spawn("sender",
                                   multicast(bench, sender, {0, 1, 2, 3, 4, 5, 6, 7}, 8192));
    bench.fabric.run();
    EXPECT_EQ(bench.fabric.transfer(1).delivered_at, *std::max_element(times.begin(), times.end()));
    return times;
}

TEST_P(Switches, every_member_knows_of_its_own_copy_when_that_is_there) {
    for (const GpuId busy : {GpuId{0}, GpuId{7}}) {
        sim::FabricOptions windows = options();
        const std::vector<Ps> times = arrivals(windows, 2, busy);
        for (std::uint32_t i = 0; i < 8; ++i) {
            if (i != busy) {
                EXPECT_LT(times[i], times[busy]);
            }
        }
        windows.scheme = sim::Scheme::heap;
        EXPECT_EQ(times, arrivals(windows, 2, busy));
    }
}

TEST_P(Switches, add_up_what_a_list_of_gpus_answers) {
    const std::vector<GpuId> members = {0, 3, 5, 6};
    Bench bench(small_machine(), options());
    fill_partials(bench, members);
    bench.fabric.gpu(3).spawn("reduce", reduce(bench, 3, members, 2));
    bench.fabric.run();
    expect_total(bench, 3, members, 2);
    EXPECT_EQ(bench.fabric.gather_stats().gathered, kRow / kLine);
    EXPECT_EQ(bench.fabric.gather_stats().evicted, 0);
    // Down to the asker: 8 packets of 9 flits; to the members: 8 requests of 2 flits each.
    EXPECT_EQ(bench.fabric.wire_bytes_down(), (8 * 9 + 4 * 8 * 2) * 16);
}

/// Requests of several GPUs for the same address, of one GPU for the same address twice.
TEST_P(Switches, keep_apart_the_same_address_asked_for_by_several_and_again) {
    std::vector<GpuId> members = {0, 1, 2, 3, 4, 5, 6, 7};
    for (const sim::Scheme scheme : {sim::Scheme::windows, sim::Scheme::heap}) {
        sim::FabricOptions given = options();
        given.scheme = scheme;
        Bench bench(small_machine(), given);
        fill_partials(bench, members);
        for (const GpuId gpu : members)
            bench.fabric.gpu(gpu).spawn("reduce", reduce(bench, gpu, members, 1));
        bench.fabric.gpu(4).spawn("reduce again", reduce(bench, 4, members, 1, 1));
        bench.fabric.run();
        for (const GpuId gpu : members) {
            if (gpu != 4) expect_total(bench, gpu, members, 1);
        }
        EXPECT_TRUE(bench.hubs[4].sums(bench.totals).complete(1, 16)) << "two times eight answers";
    }
}

/// A buffer of one packet: members that answer at different times make it overflow.
TEST_P(Switches, send_partial_sums_on_when_their_buffer_is_full_and_lose_nothing) {
    std::vector<GpuId> members = {0, 1, 2, 3, 4, 5, 6, 7};
    Machine machine = small_machine(8, 1);
    std::int64_t evicted = 0;
    for (const int room : {1, 3, 512}) {
        machine.switch_spec.sum_packets = room;
        std::vector<Ps> ends;
        for (const sim::Scheme scheme : {sim::Scheme::windows, sim::Scheme::heap}) {
            sim::FabricOptions given = options();
            given.scheme = scheme;
            Bench bench(machine, given);
            fill_partials(bench, members);
            // GPU 7's link is busy, so its answers are late.
            sim::Transfer store;
            store.dst = 6;
            store.bytes = 65536;
            bench.fabric.gpu(7).post(store);
            for (const GpuId gpu : members)
                bench.fabric.gpu(gpu).spawn("reduce", reduce(bench, gpu, members, gpu));
            bench.fabric.run();
            for (const GpuId gpu : members) expect_total(bench, gpu, members, gpu);
            const sim::GatherStats stats = bench.fabric.gather_stats();
            EXPECT_LE(stats.deepest, room);
            if (room == 1) {
                EXPECT_GT(stats.evicted, 0);
            }
            if (room == 512) {
                EXPECT_EQ(stats.evicted, 0);
            }
            evicted += stats.evicted;
            for (std::size_t i = 0; i < bench.fabric.transfers(); ++i) {
                ends.push_back(std::as_const(bench.fabric)
                                   .transfer(static_cast<sim::TransferId>(i))
                                   .completed_at);
            }
        }
        const auto half = static_cast<std::ptrdiff_t>(ends.size() / 2);
        EXPECT_TRUE(std::equal(ends.begin(), ends.begin() + half, ends.begin() + half));
    }
    EXPECT_GT(evicted, 0);
}

TEST(Switches, refuse_groups_that_reach_into_another_node) {
    sim::FabricOptions options;
    sim::Fabric fabric(small_cluster(2), options);
    sim::Transfer store;
    store.group = fabric.groups().add({0, 9});
    store.bytes = 128;
    EXPECT_THROW(fabric.gpu(0).post(store), std::logic_error);
}

TEST(GroupTableOfASwitch, knows_a_list_by_its_gpus_in_any_order) {
    sim::GroupTable table;
    const sim::GroupId group = table.add({5, 1, 3});
    EXPECT_EQ(table.add({1, 3, 5}), group);
    EXPECT_NE(table.add({1, 3}), group);
    EXPECT_EQ(std::vector<GpuId>(table.members(group).begin(), table.members(group).end()),
              (std::vector<GpuId>{1, 3, 5}));
    EXPECT_THROW(table.add({}), std::logic_error);
    EXPECT_THROW(table.add({2, 2}), std::logic_error);
}

TEST(RowSums, a_stretch_over_rows_of_odd_size_reads_and_adds_each_line_once) {
    // Rows of 200 B: lines of 128 B and 72 B; packets of 128 B cut them anywhere.
    sim::RowSums from({0, 4}, 200, 128, true), to({0, 4}, 200, 128, true);
    for (std::uint32_t row = 0; row < 4; ++row) {
        const double numbers[] = {row + 1.0, row + 101.0};
        from.add_row(row, identity(0, row), numbers);
    }
    for (Bytes offset = 0; offset < 800; offset += 128) {
        const sim::RowStretch stretch{0, offset, std::min<Bytes>(128, 800 - offset)};
        to.add(stretch, from.read(stretch), 1);
    }
    for (std::uint32_t row = 0; row < 4; ++row) {
        EXPECT_TRUE(to.complete(row, 1));
        EXPECT_EQ(to.identity(row), to.whole() * identity(0, row));
        EXPECT_EQ(to.numbers(row)[0], row + 1.0);
        EXPECT_EQ(to.numbers(row)[1], row + 101.0);
    }
    to.add({0, 0, 128}, from.read({0, 0, 128}), 1);
    EXPECT_FALSE(to.complete(0, 1));
}

}  // namespace
}  // namespace moehub::testing::switch_test
