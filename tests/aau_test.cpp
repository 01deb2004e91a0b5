// Does every row get the next free row number, keep it for all its packets, and know it in time?
#include "sim/hub/aau.hpp"

#include <moehub/error.hpp>

#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::sim::aau_test {
namespace {

constexpr Ps kLookup = 1 * kNs;
constexpr Ps kRestore = 500 * kNs;
constexpr Ps kLong = kUs;  // between packets that are not to meet

AauSpec spec_of(int entries, int banks) {
    return {{entries, banks}, kLookup, kRestore, 8};
}

std::string error_of(Aau& aau, RegionId region, std::uint32_t row) {
    try {
        aau.locate(region, row, 0, 1, 0);
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(Aau, rows_are_packed_in_the_order_of_their_first_packets) {
    Aau aau(spec_of(64, 4));
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    const std::uint64_t base = aau.memory().page(region, 0).begin;
    EXPECT_EQ(aau.locate(region, 900, 128, 1, 0).address, base + 128);
    EXPECT_EQ(aau.locate(region, 7, 0, 1, 0).address, base + 4096);
    EXPECT_EQ(aau.locate(region, 900, 256, 1, 0).address, base + 256);
    EXPECT_EQ(aau.locate(region, 7, 4000, 1, 0).address, base + 4096 + 4000);
    EXPECT_EQ(aau.rows(region), 2u);
}

TEST(Aau, each_region_counts_its_own_rows) {
    Aau aau(spec_of(64, 4));
    const RegionId one = aau.add_region({"expert 0", 100, 4096, 0});
    const RegionId two = aau.add_region({"expert 1", 100, 4096, 0});
    EXPECT_EQ(aau.locate(one, 5, 0, 1, 0).local_row, 0u);
    EXPECT_EQ(aau.locate(two, 5, 0, 1, 0).local_row, 0u);
    EXPECT_EQ(aau.locate(two, 6, 0, 1, 0).local_row, 1u);
    EXPECT_EQ(aau.rows(one), 1u);
    EXPECT_EQ(aau.rows(two), 2u);
}

TEST(Aau, only_the_first_packet_of_a_row_is_first) {
    Aau aau(spec_of(1, 1));
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    EXPECT_TRUE(aau.locate(region, 5, 0, 1, 0).first);
    EXPECT_FALSE(aau.locate(region, 5, 128, 1, 0).first);
    EXPECT_TRUE(aau.locate(region, 6, 0, 1, 0).first);
    EXPECT_FALSE(aau.locate(region, 5, 256, 1, 0).first);  // was evicted
}

TEST(Aau, an_address_is_known_one_lookup_after_the_arrival) {
    Aau aau(spec_of(64, 1));
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    EXPECT_EQ(aau.locate(region, 5, 0, 1, kLong).ready, kLong + kLookup);
    EXPECT_EQ(aau.locate(region, 5, 0, 1, 2 * kLong).ready, 2 * kLong + kLookup);
    EXPECT_EQ(aau.stats().bank_wait, 0);
}

TEST(Aau, a_packet_waits_while_its_bank_serves_another_and_not_longer) {
    Aau aau(spec_of(64, 1));
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    aau.locate(region, 1, 0, 1, 0);
    EXPECT_EQ(aau.locate(region, 2, 0, 1, kLookup - 1).ready, 2 * kLookup);
    EXPECT_EQ(aau.stats().bank_wait, 1);
    EXPECT_EQ(aau.locate(region, 3, 0, 1, 2 * kLookup).ready, 3 * kLookup);
    EXPECT_EQ(aau.stats().bank_wait, 1);
}

TEST(Aau, packets_in_different_banks_do_not_wait_for_each_other) {
    const Rat banks({64, 4});
    Aau aau(spec_of(64, 4));
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    std::uint32_t other = 1;
    while (banks.bank(region, other) == banks.bank(region, 0)) ++other;
    aau.locate(region, 0, 0, 1, 0);
    EXPECT_EQ(aau.locate(region, other, 0, 1, 0).ready, kLookup);
    EXPECT_EQ(aau.locate(region, 0, 128, 1, 0).ready, 2 * kLookup);
}

TEST(Aau, a_train_occupies_its_bank_once_per_packet) {
    Aau aau(spec_of(64, 1));
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    // The first train's packets were looked up as they came, up to the last.
    EXPECT_EQ(aau.locate(region, 1, 0, 32, kLong).ready, kLong + kLookup);
    EXPECT_EQ(aau.stats().bank_wait, 0);
    EXPECT_EQ(aau.locate(region, 2, 0, 32, kLong).ready, kLong + 33 * kLookup);
    EXPECT_EQ(aau.stats().bank_wait, 32 * kLookup);
    EXPECT_EQ(aau.stats().lookups, 64);
    EXPECT_EQ(aau.stats().hits, 62);
    EXPECT_EQ(aau.stats().allocated, 2);
}

TEST(Aau, a_train_is_ready_when_its_last_packet_has_been_looked_up) {
    Aau aau(spec_of(64, 1));
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    aau.locate(region, 1, 0, 1, kLong);  // busy until kLong + kLookup
    // Its first came 31 lookups ago, when the bank was free, and had to wait for the packet since.
    EXPECT_EQ(aau.locate(region, 2, 0, 32, kLong + 20 * kLookup).ready, kLong + 33 * kLookup);
    EXPECT_EQ(aau.stats().bank_wait, 12 * kLookup);
    // Then just in time, and one too early.
    EXPECT_EQ(aau.locate(region, 3, 0, 4, kLong + 36 * kLookup).ready, kLong + 37 * kLookup);
    EXPECT_EQ(aau.stats().bank_wait, 12 * kLookup);
    EXPECT_EQ(aau.locate(region, 4, 0, 4, kLong + 39 * kLookup).ready, kLong + 41 * kLookup);
    EXPECT_EQ(aau.stats().bank_wait, 13 * kLookup);
}

TEST(Aau, a_late_packet_of_an_evicted_row_finds_the_same_row_number_after_one_read) {
    Aau aau(spec_of(1, 1));
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    const auto early = aau.locate(region, 5, 0, 1, 0);
    aau.locate(region, 6, 0, 1, kLong);
    const auto late = aau.locate(region, 5, 128, 1, 2 * kLong);
    EXPECT_EQ(late.local_row, early.local_row);
    EXPECT_EQ(late.address, early.address + 128);
    EXPECT_EQ(late.ready, 2 * kLong + kLookup + kRestore);
    EXPECT_EQ(aau.stats().restores, 1);
    EXPECT_EQ(aau.stats().evictions, 2);  // row 5, then row 6 to make room again
    EXPECT_EQ(aau.stats().spill_bytes, 3 * 8);
    EXPECT_EQ(aau.stats().hits, 0);
}

TEST(Aau, a_new_row_costs_a_read_only_where_a_region_has_lost_entries) {
    Aau aau(spec_of(2, 1));
    const RegionId lost = aau.add_region({"expert 0", 100, 4096, 0});
    const RegionId whole = aau.add_region({"expert 1", 100, 4096, 0});
    aau.locate(lost, 1, 0, 1, 0);
    aau.locate(lost, 2, 0, 1, kLong);
    const auto evicting = aau.locate(whole, 1, 0, 1, 2 * kLong);
    EXPECT_EQ(evicting.ready, 2 * kLong + kLookup);
    EXPECT_EQ(aau.stats().spill_bytes, 8);  // written
    const auto fresh = aau.locate(lost, 3, 0, 1, 3 * kLong);
    EXPECT_TRUE(fresh.first);
    EXPECT_EQ(fresh.local_row, 2u);
    EXPECT_EQ(fresh.ready, 3 * kLong + kLookup + kRestore);
    EXPECT_EQ(aau.stats().restores, 0);
    EXPECT_EQ(aau.stats().spill_bytes, 3 * 8);  // its bit read, and another written
    EXPECT_EQ(aau.locate(whole, 2, 0, 1, 4 * kLong).ready, 4 * kLong + kLookup);
}

TEST(Aau, packets_of_a_row_being_read_back_wait_for_it_and_others_do_not) {
    Aau aau(spec_of(2, 1));
    const RegionId region = aau.add_region({"expert 0", 100, 4096, 0});
    for (std::uint32_t row = 0; row < 3; ++row) aau.locate(region, row, 0, 1, kLong * row);
    const Ps late = 10 * kLong;
    const Ps known = aau.locate(region, 0, 128, 1, late).ready;
    EXPECT_EQ(known, late + kLookup + kRestore);
    EXPECT_EQ(aau.locate(region, 0, 256, 1, late + 2 * kLookup).ready, known);
    EXPECT_EQ(aau.locate(region, 2, 128, 1, late + 4 * kLookup).ready, late + 5 * kLookup);
    EXPECT_EQ(aau.locate(region, 0, 384, 1, known).ready, known + kLookup);
}

TEST(Aau, packets_wait_for_their_rows_however_many_are_being_read_back) {
    constexpr std::uint32_t count = 1000;
    Aau aau({{count, 1}, kLookup, kMs, 8});
    const RegionId region = aau.add_region({"expert 0", 2 * count, 4096, 0});
    for (std::uint32_t row = 0; row < 2 * count; ++row) aau.locate(region, row, 0, 1, 0);
    const Ps late = 10 * kMs;
    std::vector<Ps> known;
    for (std::uint32_t row = 0; row < count; ++row) {
        known.push_back(aau.locate(region, row, 128, 1, late).ready);
    }
    for (std::uint32_t row = 0; row < count; ++row) {
        ASSERT_EQ(aau.locate(region, row, 256, 1, late).ready, known[row]);
    }
    EXPECT_EQ(aau.stats().restores, count);
    EXPECT_EQ(aau.stats().hits, count);
}

TEST(Aau, a_full_region_takes_no_new_row_and_changes_nothing) {
    Aau aau(spec_of(1, 1));
    const RegionId region = aau.add_region({"expert 3 on gpu 1", 2, 4096, 0});
    aau.locate(region, 1, 0, 1, 0);
    const auto second = aau.locate(region, 2, 0, 1, 0);
    const AauStats before = aau.stats();
    EXPECT_EQ(error_of(aau, region, 3),
              "expert 3 on gpu 1: its region has room for 2 rows of 4096 B and more arrive: "
              "--region-rows is too small");
    EXPECT_EQ(aau.rows(region), 2u);
    EXPECT_EQ(aau.stats().lookups, before.lookups);
    EXPECT_EQ(aau.stats().evictions, before.evictions);
    EXPECT_EQ(aau.stats().spill_bytes, before.spill_bytes);
    EXPECT_EQ(aau.locate(region, 2, 0, 1, kLong).ready, kLong + kLookup);  // still in the RAT
    EXPECT_EQ(aau.locate(region, 2, 0, 1, kLong).local_row, second.local_row);
    EXPECT_EQ(aau.locate(region, 1, 0, 1, kLong).local_row, 0u);
}

TEST(Aau, a_pool_used_up_stops_new_rows_and_changes_nothing) {
    Aau aau(spec_of(64, 4));
    aau.memory().set_pool(2 * 4096);
    const RegionId region = aau.add_region({"expert 3 on gpu 1", 100, 4096, 2});
    aau.locate(region, 1, 0, 1, 0);
    aau.locate(region, 2, 0, 1, 0);
    EXPECT_NE(error_of(aau, region, 3).find("expert 3 on gpu 1: no page of 2 rows (8192 B)"),
              std::string::npos);
    EXPECT_EQ(aau.rows(region), 2u);
    EXPECT_EQ(aau.stats().lookups, 2);
}

TEST(Aau, tells_of_each_page_with_the_first_row_in_it) {
    Aau aau(spec_of(1, 1));
    const RegionId region = aau.add_region({"expert 0", 5, 100, 2});
    for (std::uint32_t row = 0; row < 5; ++row) {
        const auto located = aau.locate(region, 40 - row, 8, 1, 0);
        EXPECT_EQ(located.new_page, row % 2 == 0);
        if (!located.new_page) continue;
        EXPECT_EQ(located.page_begin, located.address - 8);
        EXPECT_EQ(located.page_first_row, row);
        EXPECT_EQ(located.page_rows, row == 4 ? 1u : 2u);
        EXPECT_FALSE(aau.locate(region, 40 - row, 8, 1, 0).new_page);
    }
}

TEST(Aau, a_region_in_one_piece_is_one_page) {
    Aau aau(spec_of(1, 1));
    const RegionId region = aau.add_region({"expert 0", 5, 100, 0});
    const auto located = aau.locate(region, 1, 0, 1, 0);
    EXPECT_TRUE(located.new_page);
    EXPECT_EQ(located.page_begin, aau.memory().page(region, 0).begin);
    EXPECT_EQ(located.page_rows, 5u);
    EXPECT_FALSE(aau.locate(region, 2, 0, 1, 0).new_page);
}

TEST(Aau, a_packet_outside_its_row_is_a_defect) {
    Aau aau(spec_of(1, 1));
    const RegionId region = aau.add_region({"expert 0", 5, 100, 0});
    EXPECT_THROW(aau.locate(region, 1, 100, 1, 0), std::logic_error);
    EXPECT_THROW(aau.locate(region, 1, -1, 1, 0), std::logic_error);
    EXPECT_THROW(aau.locate(region, 1, 0, 0, 0), std::logic_error);
}

struct Packet {
    RegionId region;
    std::uint32_t row;
    Bytes offset;
};

std::vector<Packet> shuffled_packets(int regions, std::uint32_t rows, int packets) {
    std::vector<Packet> all;
    for (RegionId region = 0; region < static_cast<RegionId>(regions); ++region) {
        for (std::uint32_t row = 0; row < rows; ++row) {
            for (int i = 0; i < packets; ++i) all.push_back({region, row * 77 + 5, i * 128});
        }
    }
    for (std::size_t i = all.size(); i > 1; --i) {
        std::swap(all[i - 1], all[*rc::gen::resize(1000, rc::gen::inRange<std::size_t>(0, i))]);
    }
    return all;
}

RC_GTEST_PROP(Aau, rows_fill_their_region_densely_and_keep_their_row_number_whatever_the_order,
              ()) {
    const int regions = *rc::gen::inRange(1, 4);
    const auto rows = *rc::gen::inRange<std::uint32_t>(1, 12);
    const int packets = *rc::gen::inRange(1, 6);
    Aau aau(spec_of(*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 8)));
    const auto page_rows = *rc::gen::inRange<std::uint32_t>(0, 5);
    for (int i = 0; i < regions; ++i) aau.add_region({"region", rows, packets * 128, page_rows});

    std::map<std::pair<RegionId, std::uint32_t>, std::uint32_t> row_of;
    std::vector<std::uint32_t> next(static_cast<std::size_t>(regions));
    std::set<std::uint64_t> addresses;
    Ps now = 0;
    for (const Packet& packet : shuffled_packets(regions, rows, packets)) {
        now += kLookup / 3;
        const auto located = aau.locate(packet.region, packet.row, packet.offset, 1, now);
        const auto [known, is_new] =
            row_of.try_emplace({packet.region, packet.row}, next[packet.region]);
        if (is_new) ++next[packet.region];
        RC_ASSERT(located.local_row == known->second);
        RC_ASSERT(located.first == is_new);
        RC_ASSERT(located.ready >= now + kLookup);
        RC_ASSERT(addresses.insert(located.address).second);
    }
    for (RegionId region = 0; region < next.size(); ++region) {
        RC_ASSERT(aau.rows(region) == rows);
        RC_ASSERT(next[region] == rows);
    }
    const AauStats& stats = aau.stats();
    RC_ASSERT(stats.lookups == static_cast<std::int64_t>(addresses.size()));
    RC_ASSERT(stats.allocated == static_cast<std::int64_t>(row_of.size()));
    RC_ASSERT(stats.lookups == stats.hits + stats.allocated + stats.restores);
    RC_ASSERT(stats.evictions >= stats.restores);
}

}  // namespace
}  // namespace moehub::sim::aau_test
