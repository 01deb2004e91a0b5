// Does DySHARP's AL table, a TLB in front of device memory, find every token's row, in time and
// not earlier, and count what it reads and writes?
#include "sim/hub/aau.hpp"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace moehub::sim::al_table_test {
namespace {

constexpr Ps kLookup = 1 * kNs;
constexpr Ps kRestore = 600 * kNs;
constexpr Ps kLong = 10 * kUs;  // between packets that are not to meet
constexpr Bytes kEntry = 4;

AauSpec table_of(int entries, int banks = 1) {
    return {{entries, banks}, kLookup, kRestore, kEntry, true};
}

TEST(AlTable, the_first_packet_of_a_row_reads_the_table_and_the_others_do_not) {
    Aau table(table_of(64));
    const RegionId expert = table.add_region({"expert 0", 100, 4096, 0});
    const auto first = table.locate(expert, 5, 0, 1, 0);
    EXPECT_TRUE(first.first);
    EXPECT_EQ(first.ready, kLookup + kRestore) << "whether it was ever seen lies in memory";
    const auto hit = table.locate(expert, 5, 128, 1, kLong);
    EXPECT_FALSE(hit.first);
    EXPECT_EQ(hit.ready, kLong + kLookup);
    EXPECT_EQ(hit.address, first.address + 128);
    EXPECT_EQ(table.stats().lookups, 2);
    EXPECT_EQ(table.stats().hits, 1);
    EXPECT_EQ(table.stats().restores, 0) << "there was nothing to read back";
}

TEST(AlTable, an_allocation_reads_an_entry_and_writes_it) {
    Aau table(table_of(64));
    const RegionId expert = table.add_region({"expert 0", 100, 4096, 0});
    for (std::uint32_t row = 0; row < 10; ++row) table.locate(expert, row, 0, 1, row * kLong);
    EXPECT_EQ(table.stats().allocated, 10);
    EXPECT_EQ(table.stats().spill_bytes, 10 * 2 * kEntry);
    for (std::uint32_t row = 0; row < 10; ++row) table.locate(expert, row, 128, 1, kLong * 20);
    EXPECT_EQ(table.stats().spill_bytes, 10 * 2 * kEntry) << "hits move nothing";
}

/// What falls out of the TLB lies in memory already.
TEST(AlTable, an_eviction_costs_nothing_and_a_miss_one_read) {
    Aau table(table_of(1));
    const RegionId expert = table.add_region({"expert 0", 100, 4096, 0});
    const auto early = table.locate(expert, 5, 0, 1, 0);
    table.locate(expert, 6, 0, 1, kLong);
    EXPECT_EQ(table.stats().evictions, 1);
    EXPECT_EQ(table.stats().spill_bytes, 2 * 2 * kEntry);
    const auto late = table.locate(expert, 5, 256, 1, 2 * kLong);
    EXPECT_FALSE(late.first);
    EXPECT_EQ(late.local_row, early.local_row);
    EXPECT_EQ(late.address, early.address + 256);
    EXPECT_EQ(late.ready, 2 * kLong + kLookup + kRestore);
    EXPECT_EQ(table.stats().restores, 1);
    EXPECT_EQ(table.stats().spill_bytes, (2 * 2 + 1) * kEntry);
    EXPECT_EQ(table.stats().hits, 0);
}

TEST(AlTable, one_entry_serves_rows_in_turn_each_by_a_read) {
    Aau table(table_of(1));
    const RegionId expert = table.add_region({"expert 0", 100, 4096, 0});
    Ps now = 0;
    for (int packet = 0; packet < 4; ++packet) {
        for (std::uint32_t row = 0; row < 3; ++row, now += kLong) {
            const auto located = table.locate(expert, row, packet * 128, 1, now);
            EXPECT_EQ(located.local_row, row);
            EXPECT_EQ(located.ready, now + kLookup + kRestore);
        }
    }
    EXPECT_EQ(table.stats().lookups, 12);
    EXPECT_EQ(table.stats().hits, 0);
    EXPECT_EQ(table.stats().restores, 9);
    EXPECT_EQ(table.stats().spill_bytes, (12 + 3) * kEntry) << "reads, and what was allocated";
}

TEST(AlTable, packets_that_follow_during_the_read_wait_for_it_and_not_longer) {
    Aau table(table_of(64));
    const RegionId expert = table.add_region({"expert 0", 100, 4096, 0});
    const Ps known = table.locate(expert, 5, 0, 1, 0).ready;
    EXPECT_EQ(table.locate(expert, 5, 128, 1, known - kLookup - 1).ready, known);
    EXPECT_EQ(table.locate(expert, 5, 256, 1, known).ready, known + kLookup);
    EXPECT_EQ(table.stats().spill_bytes, 2 * kEntry) << "one read for all of them";
}

/// A RAT's packets wait where they are; every new row of an AL table would stop the link.
TEST(AlTable, packets_that_wait_for_a_read_do_not_stop_those_behind) {
    Aau table(table_of(64));
    const RegionId expert = table.add_region({"expert 0", 100, 4096, 0});
    const auto miss = table.locate(expert, 5, 0, 1, 0);
    EXPECT_EQ(miss.passed, kLookup);
    EXPECT_EQ(miss.ready, kLookup + kRestore);
    const auto behind = table.locate(expert, 5, 128, 1, kLookup);
    EXPECT_EQ(behind.passed, 2 * kLookup);
    EXPECT_EQ(behind.ready, kLookup + kRestore);
    AauSpec rat = table_of(1);
    rat.in_memory = false;
    Aau aau(rat);
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    aau.locate(region, 5, 0, 1, 0);
    aau.locate(region, 6, 0, 1, kLong);
    const auto back = aau.locate(region, 5, 128, 1, 2 * kLong);
    EXPECT_EQ(back.passed, 2 * kLong + kLookup + kRestore);
    EXPECT_EQ(back.passed, back.ready);
}

TEST(AlTable, a_train_misses_once) {
    Aau table(table_of(64));
    const RegionId expert = table.add_region({"expert 0", 100, 14336, 0});
    EXPECT_EQ(table.locate(expert, 5, 0, 112, kLong).ready, kLong + kLookup + kRestore);
    EXPECT_EQ(table.stats().lookups, 112);
    EXPECT_EQ(table.stats().hits, 111);
    EXPECT_EQ(table.locate(expert, 5, 0, 112, 2 * kLong).ready, 2 * kLong + kLookup);
    EXPECT_EQ(table.stats().hits, 111 + 112);
}

/// Dispatch allocates, combine looks up: by tokens in another order, long after.
TEST(AlTable, combine_finds_the_rows_that_dispatch_allocated) {
    for (const int entries : {1, 16, 512}) {
        Aau table(table_of(entries, 16));
        const RegionId expert = table.add_region({"expert 0", 300, 4096, 0});
        std::vector<std::uint32_t> tokens(300);
        for (std::uint32_t i = 0; i < 300; ++i) tokens[i] = 7 * i;
        std::mt19937 random(3);
        std::shuffle(tokens.begin(), tokens.end(), random);
        Ps now = 0;
        std::map<std::uint32_t, std::uint32_t> row_of;
        for (const std::uint32_t token : tokens) {
            row_of[token] = table.locate(expert, token, 0, 32, now += kLong).local_row;
        }
        std::shuffle(tokens.begin(), tokens.end(), random);
        for (const std::uint32_t token : tokens) {
            const auto found = table.locate(expert, token, 0, 32, now += kLong);
            EXPECT_FALSE(found.first);
            EXPECT_FALSE(found.new_page);
            EXPECT_EQ(found.local_row, row_of[token]);
        }
        EXPECT_EQ(table.rows(expert), 300u);
        EXPECT_EQ(table.stats().allocated, 300);
        EXPECT_EQ(table.stats().spill_bytes, kEntry * (600 + table.stats().restores));
    }
}

TEST(AlTable, tables_of_two_experts_are_apart_though_the_token_is_the_same) {
    for (const int entries : {1, 64}) {
        Aau table(table_of(entries));
        const RegionId one = table.add_region({"expert 0", 100, 4096, 0});
        const RegionId two = table.add_region({"expert 1", 100, 4096, 0});
        table.locate(one, 9, 0, 1, 0);
        const auto first = table.locate(one, 5, 0, 1, kLong);
        const auto second = table.locate(two, 5, 0, 1, 2 * kLong);
        EXPECT_EQ(first.local_row, 1u);
        EXPECT_EQ(second.local_row, 0u);
        EXPECT_TRUE(second.first);
        EXPECT_NE(first.address, second.address);
        EXPECT_EQ(table.locate(one, 5, 0, 1, 3 * kLong).local_row, 1u);
        EXPECT_EQ(table.locate(two, 5, 0, 1, 4 * kLong).local_row, 0u);
        EXPECT_EQ(table.rows(one), 2u);
        EXPECT_EQ(table.rows(two), 1u);
    }
}

/// Against a map, over random packets of random tables: rows are dense, hits are free, misses read.
TEST(AlTable, every_lookup_is_right_and_paid_for_in_any_order) {
    for (std::uint32_t seed = 0; seed < 30; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](unsigned long n) {
            return static_cast<std::uint32_t>(random() % n);
        };
        const int entries = static_cast<int>(1 + below(40));
        Aau table(table_of(entries, static_cast<int>(1 + below(8))));
        const std::uint32_t experts = 1 + below(4);
        for (std::uint32_t i = 0; i < experts; ++i) table.add_region({"expert", 50, 1024, 0});
        std::map<std::pair<RegionId, std::uint32_t>, std::uint32_t> row_of;
        std::vector<std::uint32_t> next(experts);
        std::int64_t reads = 0;
        Ps now = 0;
        for (int i = 0; i < 400; ++i) {
            const RegionId expert = below(experts);
            const std::uint32_t token = below(50);
            const std::int64_t hits = table.stats().hits;
            const auto located = table.locate(expert, token, 0, 1, now += kLong);
            const auto [known, is_new] = row_of.try_emplace({expert, token}, next[expert]);
            if (is_new) ++next[expert];
            ASSERT_EQ(located.local_row, known->second) << "seed " << seed;
            ASSERT_EQ(located.first, is_new);
            const bool hit = table.stats().hits > hits;
            reads += !hit;
            EXPECT_EQ(located.ready, now + kLookup + (hit ? 0 : kRestore));
        }
        const auto rows = static_cast<std::int64_t>(row_of.size());
        EXPECT_EQ(table.stats().lookups, 400);
        EXPECT_EQ(table.stats().allocated, rows);
        EXPECT_EQ(table.stats().restores, reads - rows);
        EXPECT_EQ(table.stats().spill_bytes, kEntry * (reads + rows));
    }
}

}  // namespace
}  // namespace moehub::sim::al_table_test
