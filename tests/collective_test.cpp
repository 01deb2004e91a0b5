// Do collectives take the time, and move the bytes, that their algorithms say?
#include <moehub/collective.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>
#include <moehub/validate.hpp>

#include <thread>

#include <gtest/gtest.h>

namespace moehub::collective_test {
namespace {

using Op = Collective::Op;
using Algorithm = Collective::Algorithm;

Collective make(Op op, Algorithm algorithm, Bytes bytes, Grain grain = Grain::row, int gpus = 8) {
    return {.op = op, .algorithm = algorithm, .gpus = gpus, .bytes = bytes, .grain = grain};
}

constexpr Bytes kMiB = 1 << 20;

std::vector<Collective> all_collectives(Bytes bytes, Grain grain, int gpus) {
    std::vector<Collective> list = {make(Op::all_to_all, Algorithm::direct, bytes, grain, gpus),
                                    make(Op::all_to_all, Algorithm::automatic, bytes, grain, gpus),
                                    make(Op::all_reduce, Algorithm::one_shot, bytes, grain, gpus)};
    for (const Op op : {Op::all_gather, Op::reduce_scatter, Op::all_reduce}) {
        for (const Algorithm how :
             {Algorithm::direct, Algorithm::ring, Algorithm::nvls, Algorithm::automatic}) {
            list.push_back(make(op, how, bytes, grain, gpus));
        }
    }
    return list;
}

TEST(Collective, published_measurements_are_met_within_5_percent) {
#ifdef MOEHUB_SANITIZED
    GTEST_SKIP() << "8 GiB collectives take minutes under a sanitizer";
#endif
    const Validation result = validate(MOEHUB_SOURCE_DIR "/validation/published_collectives.csv");
    ASSERT_EQ(result.rows.size(), 7u);
    for (const auto& row : result.rows) EXPECT_LT(std::abs(row.error), 0.05);
}

double algorithm_bandwidth(const Machine& machine, int gpus, Bytes bytes) {
    const Collective what = make(Op::all_reduce, Algorithm::nvls, bytes, Grain::row, gpus);
    return static_cast<double>(bytes) / to_seconds(run_collective(machine, what).time);
}

// Published: 425 GB/s on 72 GPUs and 4 GiB, to which the copies are fitted; 418 on 4 and 1 GiB, by
// an algorithm that is not recorded. What a GPU's thread blocks copy is the same on any number of
// GPUs, and on Blackwell it takes longer than the wire.
TEST(Collective, an_in_switch_all_reduce_is_as_fast_on_4_gpus_as_on_72) {
    const Machine machine = load_machine("gb200-nvl72");
    for (const int gpus : {4, 8, 72})
        EXPECT_NEAR(algorithm_bandwidth(with_gpus(machine, gpus), gpus, 256 * kMiB) / 420e9, 1, 0.1)
            << gpus;
}

TEST(Collective, an_in_switch_all_reduce_waits_for_its_copies_only_where_they_are_slower) {
    Machine machine = load_machine("dgx-h100");
    const double as_it_is = algorithm_bandwidth(machine, 8, 256 * kMiB);
    machine.collective.channel_copy *= 100;
    EXPECT_NEAR(algorithm_bandwidth(machine, 8, 256 * kMiB) / as_it_is, 1, 0.02) << "the wire";
    machine.collective.channel_copy = 10e9;  // in and out
    EXPECT_NEAR(algorithm_bandwidth(machine, 8, 256 * kMiB) / (16 * 10e9 / 2), 1, 0.05);
}

#ifndef MOEHUB_SANITIZED  // long, and in code that shorter tests run
TEST(Collective, both_grains_move_the_same_bytes_in_the_same_time) {
    const Machine machine = load_machine("dgx-h100");
    const std::vector<Collective> packets = all_collectives(16 * kMiB, Grain::packet, 8);
    const std::vector<Collective> rows = all_collectives(16 * kMiB, Grain::row, 8);
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const CollectiveResult packet = run_collective(machine, packets[i]);
        const CollectiveResult row = run_collective(machine, rows[i]);
        EXPECT_EQ(packet.bytes_up, row.bytes_up);
        EXPECT_EQ(packet.bytes_down, row.bytes_down);
        EXPECT_EQ(packet.packets, row.packets);
        EXPECT_NEAR(static_cast<double>(row.time) / static_cast<double>(packet.time), 1.0, 0.02)
            << "collective " << i;
    }
}
#endif

// A buffer smaller than a train, as short links have it: what is gathered leaves it as it comes.
TEST(Collective, both_grains_reduce_in_the_same_time_over_short_links) {
    const Machine machine =
        with_gpus(load_machine("dgx-b200", {"link.bandwidth=152 GB/s", "link.latency=62 ns"}), 4);
    const auto time = [&](Grain grain) {
        const Collective what = make(Op::reduce_scatter, Algorithm::nvls, 8 * kMiB, grain, 4);
        return static_cast<double>(run_collective(machine, what).time);
    };
    EXPECT_NEAR(time(Grain::row) / time(Grain::packet), 1, 0.02);
}

TEST(Collective, in_switch_reduction_sends_the_buffer_once_and_receives_a_share) {
    const Machine machine = load_machine("dgx-h100");
    const Bytes bytes = 8 * kMiB;
    const Bytes lines = bytes / 128;  // a GPU answers for all of them and asks for one in eight
    const CollectiveResult result =
        run_collective(machine, make(Op::reduce_scatter, Algorithm::nvls, bytes));
    EXPECT_EQ(result.bytes_up, 8 * (lines * 9 + lines / 8 * 2) * 16);
    EXPECT_EQ(result.bytes_down, 8 * (lines * 2 + lines / 8 * 9) * 16);
}

TEST(Collective, multicast_sends_a_share_and_receives_the_buffer_once) {
    const Machine machine = load_machine("dgx-h100");
    const Bytes bytes = 8 * kMiB;
    const Bytes lines = bytes / 128;
    const CollectiveResult result =
        run_collective(machine, make(Op::all_gather, Algorithm::nvls, bytes));
    // Up: a share of the stores, and an acknowledgement of every line received. Down: every line,
    // and one merged acknowledgement for each line sent.
    EXPECT_EQ(result.bytes_up, 8 * (lines / 8 * 10 + lines) * 16);
    EXPECT_EQ(result.bytes_down, 8 * (lines * 10 + lines / 8) * 16);
}

TEST(Collective, a_ring_moves_each_part_to_every_other_gpu) {
    const Machine machine = load_machine("dgx-h800");
    const CollectiveResult gather =
        run_collective(machine, make(Op::all_gather, Algorithm::ring, 8 * kMiB));
    const CollectiveResult reduce =
        run_collective(machine, make(Op::all_reduce, Algorithm::ring, 8 * kMiB));
    EXPECT_EQ(gather.bytes_up, 8 * 7 * (kMiB / 128) * 10 * 16);
    EXPECT_EQ(reduce.bytes_up, 2 * gather.bytes_up);
}

TEST(Collective, rings_between_nodes_use_every_nic) {
    // Eight rings of 50 GB/s beat one node's links, so those bind, as on one node.
    const Machine machine = with_gpus(load_machine("h100-cluster"), 32);
    const CollectiveResult result =
        run_collective(machine, make(Op::all_reduce, Algorithm::ring, 1024 * kMiB, Grain::row, 32));
    EXPECT_GT(result.bus_bandwidth, 250e9);
    EXPECT_LT(result.bus_bandwidth, 400e9);
}

TEST(Collective, a_small_one_takes_its_launch_and_latencies) {
    const Machine machine = load_machine("dgx-h100");
    const CollectiveResult result =
        run_collective(machine, make(Op::all_to_all, Algorithm::direct, 8 * 128));
    const Ps wire =
        machine.hub.store_latency + machine.hub.write_latency + 4 * machine.link.latency;
    EXPECT_NEAR(to_us(result.time), to_us(machine.collective.launch + wire), 0.05);
}

TEST(Collective, bytes_that_do_not_divide_evenly_all_arrive) {
    const Machine machine = load_machine("dgx-h100");
    for (const Bytes bytes : {1, 7, 8, 129, 1000, 100'003}) {
        const std::vector<Collective> rows = all_collectives(bytes, Grain::row, 8);
        const std::vector<Collective> packets = all_collectives(bytes, Grain::packet, 8);
        for (std::size_t i = 0; i < rows.size(); ++i) {  // a lost byte would end as a deadlock
            const CollectiveResult row = run_collective(machine, rows[i]);
            const CollectiveResult packet = run_collective(machine, packets[i]);
            EXPECT_EQ(row.packets, packet.packets);
            EXPECT_EQ(row.bytes_up, packet.bytes_up);
            EXPECT_EQ(row.bytes_down, packet.bytes_down);
        }
    }
}

TEST(Collective, every_machine_runs_every_collective_it_can) {
    for (const std::string& name : preset_names("machines")) {
        Machine machine = load_machine(name);
        if (machine.gpus() > 72) machine = with_gpus(machine, 64);
        for (const Collective& what : all_collectives(1 * kMiB, Grain::row, machine.gpus())) {
            const bool switched = what.algorithm == Algorithm::nvls;
            const bool one_node = switched || what.algorithm == Algorithm::one_shot;
            if ((switched && !machine.in_switch) || (one_node && machine.nodes > 1)) {
                EXPECT_THROW(run_collective(machine, what), InputError) << name;
            } else {
                EXPECT_GT(run_collective(machine, what).time, 0) << name;
            }
        }
    }
}

TEST(Collective, threads_beside_each_other_get_the_same_result) {
    const Machine machine = load_machine("gh200-nvl32");
    const Collective what = make(Op::all_to_all, Algorithm::direct, 4 * kMiB, Grain::packet, 32);
    const CollectiveResult alone = run_collective(machine, what);
    std::vector<CollectiveResult> results(4);
    std::vector<std::thread> threads;
    for (CollectiveResult& result : results) {
        threads.emplace_back([&] { result = run_collective(machine, what); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const CollectiveResult& result : results) {
        EXPECT_EQ(result.time, alone.time);
        EXPECT_EQ(result.events, alone.events);
    }
}

// These numbers hold for every compiler and every run; a change of the model changes them.
TEST(Collective, results_are_the_same_bytes_everywhere) {
    const Machine machine = load_machine("dgx-h100");
    const auto time = [&](Op op, Algorithm how, Grain grain) {
        return run_collective(machine, make(op, how, 3'000'000, grain)).time;
    };
    EXPECT_EQ(time(Op::all_to_all, Algorithm::direct, Grain::packet), 17'016'921);
    EXPECT_EQ(time(Op::all_to_all, Algorithm::direct, Grain::row), 17'024'103);
    EXPECT_EQ(time(Op::all_reduce, Algorithm::ring, Grain::row), 80'921'806);
    EXPECT_EQ(time(Op::all_reduce, Algorithm::nvls, Grain::packet), 40'961'110);
    EXPECT_EQ(time(Op::all_reduce, Algorithm::nvls, Grain::row), 40'031'027);
}

TEST(Collective, what_cannot_run_is_refused_in_one_line) {
    const Machine machine = load_machine("dgx-h100");
    const auto message = [&](const Collective& what) -> std::string {
        try {
            run_collective(machine, what);
            return "";
        } catch (const InputError& error) {
            return error.what();
        }
    };
    EXPECT_EQ(message(make(Op::all_to_all, Algorithm::ring, kMiB)),
              "all_to_all runs with the direct algorithm or auto only");
    EXPECT_EQ(message(make(Op::all_gather, Algorithm::one_shot, kMiB)),
              "one-shot is an algorithm of all_reduce only");
    EXPECT_EQ(message(make(Op::all_to_all, Algorithm::direct, 0)),
              "bytes: found 0, allowed 1 to 1099511627776");
    EXPECT_EQ(message(make(Op::all_to_all, Algorithm::direct, kMiB, Grain::row, 1)),
              "a collective needs at least 2 GPUs, found 1");
    EXPECT_EQ(message(make(Op::all_to_all, Algorithm::direct, kMiB, Grain::row, 4)),
              "dgx-h100 has 8 GPUs, the collective asks for 4");
}

}  // namespace
}  // namespace moehub::collective_test
