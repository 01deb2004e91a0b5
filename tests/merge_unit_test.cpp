// Does a switch make one of the requests for a line, answer each of them once, add each
// contribution once whatever it has to give up, and always go on? Both grains, both schemes.
#include "grains.hpp"
#include "merge_bench.hpp"

#include <gtest/gtest.h>

namespace moehub::testing::merge_unit_test {
namespace {

using sim::EventKind;

// small_machine(): a flit takes 100 ps on one of the links.
constexpr Ps kStore = 150 * kNs, kHop = 250 * kNs, kWrite = 400 * kNs, kRead = 600 * kNs;
constexpr Ps kFlit = 100;
constexpr Ps kSecond = 1'000'000'000 * kNs;

class Merging : public InGrainAndScheme {};
IN_BOTH_GRAINS_AND_SCHEMES(Merging);

Machine merging(int gpus, int switches, int entries, Ps timeout) {
    Machine machine = small_machine(gpus, switches);
    machine.cais.merge_entries = entries;
    machine.cais.merge_timeout = timeout;
    return machine;
}

/// Each GPU but the home asks for row 0 of GPU 0, the n-th at times[n].
sim::MergeStats run_row(MergeBench& bench, EventKind kind, const std::vector<Ps>& times) {
    for (std::uint32_t gpu = 1; gpu < bench.gpus; ++gpu) {
        bench.fabric.gpu(gpu).spawn("ask", ask(bench.fabric.gpu(gpu), bench.done,
                                               {{times[gpu - 1], bench.request(kind, 0, 0)}}));
    }
    bench.fabric.run();
    const sim::MergeStats stats = bench.fabric.merge_stats();
    EXPECT_EQ(stats.requests, stats.merged + stats.sent_home);
    return stats;
}

void expect_loaded(MergeBench& bench) {
    for (std::uint32_t gpu = 1; gpu < bench.gpus; ++gpu)
        EXPECT_TRUE(bench.loaded(gpu, 0, 0)) << gpu;
}

const sim::Transfer& of(const MergeBench& bench, sim::TransferId id) {
    return std::as_const(bench.fabric).transfer(id);
}

TEST_P(Merging, a_load_that_waits_takes_the_others_in) {
    MergeBench bench(merging(4, 1, 320, kSecond), options(), {1, 128});
    const sim::MergeStats stats = run_row(bench, EventKind::load, {0, 100 * kNs, 200 * kNs});
    EXPECT_EQ(stats.requests, 3);
    EXPECT_EQ(stats.merged, 2);
    EXPECT_EQ(stats.sent_home, 1);
    EXPECT_EQ(stats.entries, 1);
    EXPECT_EQ(stats.deepest, 1);
    EXPECT_EQ(stats.longest_wait, 200 * kNs);
    EXPECT_EQ(stats.waited, 200e3);
    expect_loaded(bench);
    EXPECT_EQ(bench.fabric.wire_bytes_up(), (3 * 1 + 9) * 16);
    EXPECT_EQ(bench.fabric.wire_bytes_down(), (1 + 3 * 9) * 16);
    // There and back, and again from the switch: all of them when the first one's data is here.
    const Ps home = kStore + 2 * (kFlit + kHop) + kRead;
    for (sim::TransferId id = 0; id < 3; ++id) {
        EXPECT_EQ(of(bench, id).completed_at, home + 2 * (9 * kFlit + kHop));
    }
}

TEST_P(Merging, a_load_that_comes_later_is_answered_by_the_switch) {
    MergeBench bench(merging(4, 1, 320, kSecond), options(), {1, 128});
    const Ps late = 5000 * kNs;
    const sim::MergeStats stats = run_row(bench, EventKind::load, {0, late, 2 * late});
    EXPECT_EQ(stats.merged, 2);
    EXPECT_EQ(stats.sent_home, 1);
    EXPECT_EQ(stats.timed_out, 0);
    expect_loaded(bench);
    EXPECT_EQ(of(bench, 1).completed_at, late + kStore + kFlit + kHop + 9 * kFlit + kHop);
}

TEST_P(Merging, a_line_that_all_have_is_asked_for_anew) {
    MergeBench bench(merging(3, 1, 320, kSecond), options(), {1, 128});
    const Ps late = 5000 * kNs;
    for (const std::uint32_t gpu : {1u, 2u}) {
        const sim::Transfer load = bench.request(EventKind::load, 0, 0);
        bench.fabric.gpu(gpu).spawn(
            "ask", ask(bench.fabric.gpu(gpu), bench.done, {{0, load}, {late, load}}));
    }
    bench.fabric.run();
    const sim::MergeStats stats = bench.fabric.merge_stats();
    EXPECT_EQ(stats.sent_home, 2);
    EXPECT_EQ(stats.entries, 2);
    EXPECT_TRUE(bench.hubs[1].sums(3).complete(0, 2)) << "came twice";
}

TEST_P(Merging, reductions_become_one_sum_and_are_acknowledged_one_by_one) {
    MergeBench bench(merging(4, 1, 320, kSecond), options(), {1, 128});
    bench.watch_rows();
    const Ps last = 300 * kNs;
    const sim::MergeStats stats = run_row(bench, EventKind::reduce, {0, 100 * kNs, last});
    EXPECT_EQ(stats.requests, 3);
    EXPECT_EQ(stats.merged, 2);
    EXPECT_EQ(stats.sent_home, 1);
    EXPECT_EQ(stats.longest_wait, last);
    EXPECT_TRUE(bench.summed(0, 0));
    EXPECT_EQ(bench.fabric.payload_received(), 128);
    EXPECT_EQ(bench.fabric.wire_bytes_up(), (3 * 9 + 1) * 16);
    EXPECT_EQ(bench.fabric.wire_bytes_down(), (9 + 3) * 16);
    const Ps there_and_back = kStore + 9 * kFlit + kHop + kFlit + kHop;
    EXPECT_EQ(of(bench, 0).completed_at, there_and_back);
    EXPECT_EQ(of(bench, 1).completed_at, 100 * kNs + there_and_back);
    EXPECT_EQ(of(bench, 2).completed_at, last + there_and_back);
    EXPECT_EQ(bench.fabric.gpu(0).value(bench.whole), 1);
}

sim::Process note_whole(MergeBench& bench, Ps& time) {
    co_await bench.fabric.gpu(0).until(bench.whole, 1);
    time = bench.fabric.gpu(0).now();
}

TEST_P(Merging, a_home_knows_when_its_sum_is_in_memory) {
    MergeBench bench(merging(4, 1, 320, kSecond), options(), {1, 128});
    bench.watch_rows();
    Ps time = 0;
    bench.fabric.gpu(0).spawn("watch", note_whole(bench, time));
    run_row(bench, EventKind::reduce, {0, 0, 0});
    EXPECT_EQ(time, kStore + 2 * (9 * kFlit + kHop) + kWrite);
}

/// Acknowledgements that cost nothing: the switch's own go straight to their GPUs, and the home's
/// to nobody.
TEST_P(Merging, reductions_are_acknowledged_once_where_that_costs_nothing) {
    Machine machine = merging(4, 1, 320, kSecond);
    machine.link.ack_flits = 0;
    MergeBench bench(machine, options(), {1, 128});
    run_row(bench, EventKind::reduce, {0, 0, 0});
    EXPECT_TRUE(bench.summed(0, 0));
    EXPECT_EQ(of(bench, 0).completed_at, kStore + 9 * kFlit + kHop + kHop);
    EXPECT_EQ(bench.fabric.wire_bytes_up(), 3 * 9 * 16);
}

TEST_P(Merging, reductions_go_home_as_they_are_when_their_time_is_up) {
    const Ps timeout = 1000 * kNs;
    MergeBench bench(merging(4, 1, 320, timeout), options(), {1, 128});
    bench.watch_rows();
    const Ps late = 5000 * kNs;
    const sim::MergeStats stats = run_row(bench, EventKind::reduce, {0, 100 * kNs, late});
    EXPECT_EQ(stats.merged, 1);
    EXPECT_EQ(stats.sent_home, 2);
    EXPECT_EQ(stats.timed_out, 2);
    EXPECT_TRUE(bench.summed(0, 0));
    EXPECT_EQ(bench.fabric.gpu(0).value(bench.whole), 1);
    // The sum of the first two is in memory a timeout after it was begun, that of the last, too.
    EXPECT_EQ(stats.longest_wait, 100 * kNs);
}

TEST_P(Merging, data_is_dropped_when_its_time_is_up) {
    MergeBench bench(merging(4, 1, 320, 3000 * kNs), options(), {1, 128});
    const sim::MergeStats stats = run_row(bench, EventKind::load, {0, 100 * kNs, 5000 * kNs});
    EXPECT_EQ(stats.sent_home, 2);
    EXPECT_EQ(stats.timed_out, 2);
    expect_loaded(bench);
}

/// It answers those who waited; who comes too late goes home by itself.
TEST_P(Merging, a_load_whose_time_is_up_still_waits_for_its_data) {
    MergeBench bench(merging(4, 1, 320, 500 * kNs), options(), {1, 128});
    const sim::MergeStats stats = run_row(bench, EventKind::load, {0, 100 * kNs, 600 * kNs});
    EXPECT_EQ(stats.merged, 1);
    EXPECT_EQ(stats.sent_home, 2);
    EXPECT_EQ(stats.bypassed, 1);
    EXPECT_EQ(stats.timed_out, 1);
    expect_loaded(bench);
}

TEST_P(Merging, nothing_is_merged_where_there_is_no_time) {
    for (const EventKind kind : {EventKind::load, EventKind::reduce}) {
        MergeBench bench(merging(6, 1, 320, 0), options(), {1, 128});
        const sim::MergeStats stats = run_row(bench, kind, {0, 0, 0, 10 * kNs, 10 * kNs});
        EXPECT_EQ(stats.merged, 0);
        EXPECT_EQ(stats.sent_home, 5);
        if (kind == EventKind::load) {
            expect_loaded(bench);
        } else {
            EXPECT_TRUE(bench.summed(0, 0));
        }
    }
}

/// GPU 1 begins three lines at a table of two: the one that was used least recently goes.
TEST_P(Merging, a_full_table_gives_up_what_was_used_least_recently) {
    MergeBench bench(merging(4, 1, 2, kSecond), options(), {3, 128});
    bench.watch_rows();
    const auto at = [&](Ps time, std::uint32_t row) {
        return Timed{time * kNs, bench.request(EventKind::reduce, 0, row)};
    };
    const auto spawn = [&](std::uint32_t gpu, std::vector<Timed> requests) {
        bench.fabric.gpu(gpu).spawn("ask", ask(bench.fabric.gpu(gpu), bench.done, requests));
    };
    spawn(1, {at(0, 0), at(10, 1), at(30, 2)});
    spawn(2,
          {at(20, 0), at(40, 0 + 1), at(60, 2)});  // row 0 was used after row 1, which goes at 30
    spawn(3, {at(50, 1), at(70, 2), at(80, 0)});
    bench.fabric.run();
    const sim::MergeStats stats = bench.fabric.merge_stats();
    // 30: row 1 (GPU 1). 40: row 1 anew, row 0 (1, 2) goes. 80: row 0 anew, and alone there.
    EXPECT_EQ(stats.evicted, 2);
    EXPECT_EQ(stats.entries, 5);
    EXPECT_EQ(stats.deepest, 2);
    for (std::uint32_t row = 0; row < 3; ++row) EXPECT_TRUE(bench.summed(0, row)) << row;
    EXPECT_EQ(stats.timed_out, 2) << "rows 1 and 0, which not all came to any more";
}

TEST_P(Merging, a_load_that_waits_is_not_given_up) {
    MergeBench bench(merging(3, 1, 1, kSecond), options(), {2, 128});
    const auto at = [&](Ps time, EventKind kind, std::uint32_t row) {
        return Timed{time * kNs, bench.request(kind, 0, row)};
    };
    bench.fabric.gpu(1).spawn("ask", ask(bench.fabric.gpu(1), bench.done,
                                         {at(0, EventKind::load, 0), at(10, EventKind::load, 1),
                                          at(20, EventKind::reduce, 1)}));
    bench.fabric.gpu(2).spawn("ask", ask(bench.fabric.gpu(2), bench.done,
                                         {at(100, EventKind::load, 0), at(3000, EventKind::load, 1),
                                          at(6000, EventKind::reduce, 1)}));
    bench.fabric.run();
    const sim::MergeStats stats = bench.fabric.merge_stats();
    EXPECT_EQ(stats.bypassed, 2);
    EXPECT_EQ(stats.evicted, 1) << "row 1, which GPU 2 alone asked the switch for";
    for (const std::uint32_t gpu : {1u, 2u}) {
        EXPECT_TRUE(bench.loaded(gpu, 0, 0));
        EXPECT_TRUE(bench.loaded(gpu, 0, 1));
    }
    EXPECT_TRUE(bench.summed(0, 1));
}

/// All lines of all homes, each GPU in its own order: forwards, backwards, or shuffled.
struct Storm {
    sim::MergeStats stats;
    std::vector<std::vector<Ps>> completed;  ///< by GPU
    Bytes up = 0;
    Bytes down = 0;
};
struct StormCase {
    Machine machine;
    MergeBench::Shape shape;
    unsigned seed = 0;
    bool shuffled = false;  ///< else every second GPU backwards
    Ps spread = 0;          ///< how far the requests' times differ
};
Storm storm(const StormCase& given, const sim::FabricOptions& options) {
    MergeBench bench(given.machine, options, given.shape);
    bench.watch_rows();
    std::mt19937 random(given.seed);
    for (std::uint32_t gpu = 0; gpu < bench.gpus; ++gpu) {
        std::vector<Timed> requests;
        for (std::uint32_t row = 0; row < given.shape.rows; ++row) {
            for (std::uint32_t home = 0; home < bench.gpus; ++home) {
                if (home == gpu) continue;
                for (const EventKind kind : {EventKind::load, EventKind::reduce}) {
                    const Ps time =
                        given.spread == 0 ? 0 : static_cast<Ps>(random()) % given.spread;
                    requests.push_back({time, bench.request(kind, home, row)});
                }
            }
        }
        if (given.shuffled) std::shuffle(requests.begin(), requests.end(), random);
        if (!given.shuffled && gpu % 2 == 1) std::reverse(requests.begin(), requests.end());
        bench.fabric.gpu(gpu).spawn("ask", ask(bench.fabric.gpu(gpu), bench.done, requests));
    }
    bench.fabric.run();
    Storm result{bench.fabric.merge_stats(),
                 {},
                 bench.fabric.wire_bytes_up(),
                 bench.fabric.wire_bytes_down()};
    for (std::uint32_t home = 0; home < bench.gpus; ++home) {
        for (std::uint32_t row = 0; row < given.shape.rows; ++row) {
            EXPECT_TRUE(bench.summed(home, row));
            EXPECT_EQ(bench.fabric.gpu(home).value(bench.whole + row), 1);
            for (std::uint32_t gpu = 0; gpu < bench.gpus; ++gpu) {
                EXPECT_TRUE(gpu == home || bench.loaded(gpu, home, row));
            }
        }
    }
    result.completed.resize(
        bench.gpus);  // transfers' numbers depend on the scheme, a GPU's order not
    for (std::size_t i = 0; i < bench.fabric.transfers(); ++i) {
        const sim::Transfer& transfer = of(bench, static_cast<sim::TransferId>(i));
        result.completed[transfer.src].push_back(transfer.completed_at);
    }
    EXPECT_EQ(result.stats.requests, result.stats.merged + result.stats.sent_home);
    EXPECT_LE(result.stats.deepest, bench.fabric.merge_packets());
    return result;
}

TEST_P(Merging, gpus_in_opposite_orders_with_a_table_of_one_go_on) {
    for (const Ps timeout : {Ps{0}, 1000 * kNs, kSecond}) {
        const Storm made = storm({merging(4, 1, 1, timeout), {16, 512}, 1, false, 0}, options());
        EXPECT_GT(made.stats.evicted + made.stats.bypassed, 0);
    }
}

TEST_P(Merging, links_carry_what_the_closed_form_says_when_nothing_is_given_up) {
    for (const int gpus : {2, 4, 8}) {
        const StormCase given{merging(gpus, 2, 100'000, kSecond), {8, 1024}, 3, true, 2000 * kNs};
        const Storm made = storm(given, options());
        EXPECT_EQ(made.stats.evicted + made.stats.bypassed + made.stats.timed_out, 0);
        // A line has N−1 contributions and a home's acknowledgement, N−1 requests and its data
        // up; the sum and N−1 acknowledgements, one request and N−1 times its data down.
        const Bytes lines = gpus * 8 * 8;
        const Bytes others = gpus - 1;
        EXPECT_EQ(made.up, lines * (others * 9 + 1 + others * 1 + 9) * 16);
        EXPECT_EQ(made.down, lines * (9 + others * 1 + 1 + others * 9) * 16);
        if (gpus > 2) {
            EXPECT_EQ(made.stats.merged, 2 * lines * (others - 1));
        }
    }
}

TEST_P(Merging, trains_of_many_packets_are_merged_too) {
    const StormCase given{merging(4, 4, 320, kSecond), {6, 16384}, 3, true, 4000 * kNs};
    const Storm made = storm(given, options());
    EXPECT_GT(made.stats.merged, 0);
}

/// What packets see of a GPU that is late by 111 of them, and of a table that holds less than that.
TEST(MergeUnit, is_as_full_in_row_grain_as_packets_make_it) {
    for (const int entries : {100'000, 50}) {
        sim::MergeStats stats[2];
        for (const Grain grain : {Grain::packet, Grain::row}) {
            sim::FabricOptions options;
            options.grain = grain;
            MergeBench bench(merging(4, 1, entries, 20'000 * kNs), options, {1, 65536});
            stats[grain == Grain::row ? 1 : 0] =
                run_row(bench, EventKind::reduce, {0, 0, 100 * kNs});
            EXPECT_TRUE(bench.summed(0, 0));
        }
        EXPECT_EQ(stats[0].deepest, entries == 50 ? 50 : 112);
        EXPECT_NEAR(static_cast<double>(stats[1].deepest), static_cast<double>(stats[0].deepest),
                    1);
        EXPECT_EQ(stats[0].merged, stats[1].merged);
        EXPECT_EQ(stats[0].evicted > 0, entries == 50);
        EXPECT_EQ(stats[1].evicted > 0, entries == 50);
    }
}

TEST(MergeUnit, keeps_every_request_whatever_happens) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        std::mt19937 random(seed);
        const auto pick = [&](std::initializer_list<std::int64_t> of) {
            return *(of.begin() + static_cast<std::ptrdiff_t>(random() % of.size()));
        };
        const auto gpus = static_cast<int>(2 + random() % 7);
        StormCase given;
        given.machine = merging(gpus, static_cast<int>(pick({1, 2, 4})),
                                static_cast<int>(pick({1, 2, 7, 64, 320})),
                                pick({0, 1, 100 * kNs, 1500 * kNs, 20'000 * kNs, kSecond}));
        given.machine.link.ack_flits = static_cast<int>(pick({0, 1}));
        given.shape = {static_cast<std::uint32_t>(pick({1, 4, 9})), pick({128, 640, 4096})};
        given.seed = seed;
        given.shuffled = random() % 2 == 0;
        given.spread = pick({0, 500 * kNs, 10'000 * kNs});
        for (const Grain grain : {Grain::packet, Grain::row}) {
            SCOPED_TRACE(::testing::Message()
                         << "seed " << seed << (grain == Grain::row ? " row" : ""));
            sim::FabricOptions options;
            options.grain = grain;
            options.train = pick({128, 1024, 65536});
            options.separate_loads = random() % 2 == 0;
            options.slow_ingress = random() % 2 == 0;
            const Storm windows = storm(given, options);
            options.scheme = sim::Scheme::heap;
            EXPECT_EQ(windows.completed, storm(given, options).completed);
        }
    }
}

TEST(MergeUnit, leaves_alone_what_no_switch_can_merge) {
    Machine machine = small_cluster(2);
    sim::Fabric fabric(machine, {});
    sim::Transfer load;
    load.kind = EventKind::load;
    load.bytes = 256;
    load.target.merge = 3;
    load.dst = 9;
    EXPECT_EQ(fabric.transfer(fabric.gpu(0).post(load)).target.merge, 0);
    load.dst = 0;
    EXPECT_EQ(fabric.transfer(fabric.gpu(0).post(load)).target.merge, 0);
    load.dst = 1;
    EXPECT_EQ(fabric.transfer(fabric.gpu(0).post(load)).target.merge, 3);
    load.kind = EventKind::reduce;
    load.arrived = 0;
    EXPECT_THROW(fabric.gpu(0).post(load), std::logic_error);
    load.kind = EventKind::store;
    EXPECT_THROW(fabric.gpu(0).post(load), std::logic_error);
    sim::FabricOptions rpm;
    rpm.queueing = sim::Queueing::rpm;
    sim::Fabric other(machine, rpm);
    load.kind = EventKind::load;
    EXPECT_THROW(other.gpu(0).post(load), std::logic_error);
}

/// Ordinary ones, to others and to the GPU itself: told of by `arrived` as stores are.
TEST_P(Merging, reductions_that_no_switch_merges_are_added_one_by_one) {
    MergeBench bench(small_machine(4, 2), options(), {2, 1024});
    const sim::CounterId arrived = bench.fabric.gpu(0).add_counter("arrived");
    for (std::uint32_t gpu = 0; gpu < 4; ++gpu) {
        sim::Transfer reduce = bench.request(EventKind::reduce, 0, 0);
        reduce.bytes = 2 * 1024;
        reduce.target.merge = 0;
        reduce.arrived = arrived;
        bench.fabric.gpu(gpu).spawn("ask", ask(bench.fabric.gpu(gpu), bench.done, {{0, reduce}}));
    }
    bench.fabric.run();
    EXPECT_EQ(bench.fabric.gpu(0).value(arrived), 4);
    EXPECT_EQ(bench.fabric.merge_stats().requests, 0);
    EXPECT_EQ(bench.fabric.payload_received(), 3 * 2048);
    for (const std::uint32_t row : {0u, 1u}) {
        std::uint64_t all = 0;
        for (std::uint32_t gpu = 0; gpu < 4; ++gpu) all += MergeBench::contribution(gpu, 0, row);
        const sim::RowSums& sums = bench.hubs[0].sums(bench.sums);
        EXPECT_TRUE(sums.complete(row, 4));
        EXPECT_EQ(sums.identity(row), sums.whole() * all);
    }
}

TEST(SumsWatch, counts_stretches_that_cross_pieces_and_a_shorter_last_one) {
    Machine machine = small_machine(2, 1);
    sim::Fabric fabric(machine, {});
    sim::Hub hub(fabric.gpu(0), machine, {});
    const sim::RegionId region = hub.add_sums({10, 5}, 256);
    const sim::CounterId first = fabric.gpu(0).add_counters("piece", 3);
    EXPECT_THROW(hub.watch_sums(region, {300, 1, first}), std::logic_error);
    hub.watch_sums(region, {512, 3, first});
    sim::Sum sum;
    for (int i = 0; i < 5; ++i) sum.identities.push_back(1);
    hub.add_sum({region, {10, 0, 5 * 256}, 2, 100}, sum, {});  // all of it for two
    hub.add_sum({region, {11, 128, 640}, 1, 70}, sum, {});     // rows 11½ to 14
    hub.add_sum({region, {10, 0, 384}, 1, 50}, sum, {});
    hub.add_sum({region, {14, 0, 256}, 1, 300}, sum, {});
    Ps end = 0;
    const auto wait = [](sim::Endpoint& gpu, sim::CounterId piece, Ps& last) -> sim::Process {
        co_await gpu.until(piece + 2, 1);
        last = gpu.now();
    };
    fabric.gpu(0).spawn("wait", wait(fabric.gpu(0), first, end));
    fabric.run();
    EXPECT_EQ(end, 300);
    for (const sim::CounterId piece : {0u, 1u, 2u}) {
        EXPECT_EQ(fabric.gpu(0).value(first + piece), 1);
    }
    EXPECT_THROW(hub.add_sum({region, {10, 0, 128}, 1, 400}, sum, {}), std::logic_error);
}

/// Reductions fill the queue and the buffers to one home; a load from it goes past them.
TEST(SeparateLoads, do_not_wait_behind_reductions_for_the_same_peer) {
    Ps ends[2] = {};
    for (const bool separate : {false, true}) {
        sim::FabricOptions options;
        options.grain = Grain::packet;
        options.separate_loads = separate;
        sim::Fabric fabric(small_machine(8, 1), options);
        sim::Transfer transfer;
        transfer.kind = EventKind::reduce;
        transfer.dst = 1;
        transfer.bytes = 1 << 20;
        fabric.gpu(0).post(transfer);
        transfer.kind = EventKind::load;
        transfer.bytes = 128;
        const sim::TransferId load = fabric.gpu(0).post(transfer);
        fabric.run();
        ends[separate ? 1 : 0] = fabric.transfer(load).completed_at;
    }
    EXPECT_GT(ends[0], 7000 * kNs);
    EXPECT_LT(ends[1], 1800 * kNs);
}

}  // namespace
}  // namespace moehub::testing::merge_unit_test
