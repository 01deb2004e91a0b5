// Does the RAT remember as many rows as it has entries, and lose none for good?
#include "sim/hub/aau_tables.hpp"

#include <deque>
#include <map>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::sim::rat_test {
namespace {

TEST(Rat, finds_what_was_entered_and_nothing_else) {
    Rat rat({.entries = 64, .banks = 1});
    EXPECT_EQ(rat.find(0, 0), std::nullopt);
    rat.insert(0, 5, 17);
    rat.insert(1, 5, 3);
    EXPECT_EQ(rat.find(0, 5), 17);
    EXPECT_EQ(rat.find(1, 5), 3);
    EXPECT_EQ(rat.find(5, 0), std::nullopt);
    EXPECT_EQ(rat.find(0, 6), std::nullopt);
}

TEST(Rat, takes_the_largest_numbers) {
    constexpr std::uint32_t most = 0xffff'ffff;
    Rat rat({.entries = 4, .banks = 2});
    rat.insert(most, most, most);
    EXPECT_EQ(rat.find(most, most), most);
    EXPECT_EQ(rat.find(0, 0), std::nullopt);
}

TEST(Rat, a_full_bank_loses_its_oldest_row) {
    Rat rat({.entries = 3, .banks = 1});
    for (std::uint32_t row = 0; row < 3; ++row) EXPECT_FALSE(rat.insert(7, row, row).evicted);
    EXPECT_TRUE(rat.find(7, 0));  // being found makes it no younger
    const Rat::Inserted inserted = rat.insert(8, 0, 0);
    EXPECT_TRUE(inserted.evicted);
    EXPECT_EQ(inserted.victim_region, 7u);
    EXPECT_FALSE(rat.find(7, 0));
    EXPECT_TRUE(rat.find(7, 1));
    EXPECT_TRUE(rat.find(7, 2));
    EXPECT_TRUE(rat.find(8, 0));
}

TEST(Rat, a_lost_row_lies_in_device_memory_until_it_is_taken) {
    Rat rat({.entries = 1, .banks = 1});
    rat.insert(0, 10, 4);
    EXPECT_EQ(rat.take_spilled(0, 10), std::nullopt);
    rat.insert(0, 11, 5);
    EXPECT_EQ(rat.spilled(), 1u);
    EXPECT_EQ(rat.take_spilled(0, 10), 4);
    EXPECT_EQ(rat.take_spilled(0, 10), std::nullopt);
    EXPECT_EQ(rat.spilled(), 0u);
}

TEST(Rat, has_no_more_banks_than_entries) {
    EXPECT_EQ(Rat({.entries = 3, .banks = 16}).banks(), 3u);
    EXPECT_EQ(Rat({.entries = 16, .banks = 16}).banks(), 16u);
    EXPECT_THROW(Rat({.entries = 0, .banks = 1}), std::logic_error);
    EXPECT_THROW(Rat({.entries = 1, .banks = 0}), std::logic_error);
}

TEST(Rat, holds_all_its_entries_when_they_do_not_divide_by_its_banks) {
    Rat rat({.entries = 10, .banks = 4});
    for (std::uint32_t row = 0; row < 1000; ++row) rat.insert(0, row, row);
    EXPECT_EQ(rat.held(), 10u);
    EXPECT_EQ(rat.spilled(), 990u);
}

TEST(Rat, spreads_rows_that_follow_one_another_over_its_banks) {
    const Rat rat({.entries = 16384, .banks = 16});
    for (const std::uint32_t stride : {1u, 16u, 4096u}) {
        std::vector<int> rows(16);
        for (std::uint32_t row = 0; row < 16000; ++row) ++rows[rat.bank(3, row * stride)];
        for (const int count : rows) EXPECT_NEAR(count, 1000, 150) << "stride " << stride;
    }
}

TEST(Rat, takes_memory_for_the_rows_it_holds_not_for_those_it_could) {
    Rat rat({.entries = 1 << 28, .banks = 1024});
    for (std::uint32_t row = 0; row < 10'000; ++row) EXPECT_FALSE(rat.insert(0, row, row).evicted);
    for (std::uint32_t row = 0; row < 10'000; ++row) EXPECT_EQ(rat.find(0, row), row);
}

TEST(Rat, a_row_entered_twice_is_a_defect) {
    Rat rat({.entries = 8, .banks = 1});
    rat.insert(0, 1, 0);
    EXPECT_THROW(rat.insert(0, 1, 0), std::logic_error);
}

// A RAT of plain containers: one queue per bank.
struct PlainRat {
    std::size_t entries;
    std::map<std::uint32_t, std::deque<std::uint64_t>> banks;
    std::map<std::uint64_t, std::uint32_t> held;
    std::map<std::uint64_t, std::uint32_t> spilled;

    void insert(std::uint32_t bank, std::uint64_t row, std::uint32_t local_row) {
        held[row] = local_row;
        banks[bank].push_back(row);
        if (banks[bank].size() <= entries) return;
        const std::uint64_t victim = banks[bank].front();
        banks[bank].pop_front();
        spilled[victim] = held[victim];
        held.erase(victim);
    }
};

RC_GTEST_PROP(Rat, agrees_with_one_queue_per_bank, ()) {
    const int banks = *rc::gen::inRange(1, 5);
    const int each = *rc::gen::inRange(1, 20);
    Rat rat({.entries = banks * each, .banks = banks});
    PlainRat plain{static_cast<std::size_t>(each), {}, {}, {}};
    const auto rows = *rc::gen::container<std::vector<std::pair<RegionId, std::uint32_t>>>(
        rc::gen::pair(rc::gen::inRange<RegionId>(0, 3), rc::gen::inRange<std::uint32_t>(0, 100)));
    std::uint32_t next = 0;
    for (const auto& [region, row] : rows) {
        const std::uint64_t key = row_key(region, row);
        const auto held = plain.held.find(key);
        RC_ASSERT(rat.find(region, row).has_value() == (held != plain.held.end()));
        if (held != plain.held.end()) {
            RC_ASSERT(*rat.find(region, row) == held->second);
            continue;
        }
        const auto spilled = rat.take_spilled(region, row);
        RC_ASSERT(spilled.has_value() == plain.spilled.contains(key));
        if (spilled) RC_ASSERT(*spilled == plain.spilled[key]);
        plain.spilled.erase(key);
        const std::uint32_t local_row = spilled ? *spilled : next++;
        rat.insert(region, row, local_row);
        plain.insert(rat.bank(region, row), key, local_row);
        RC_ASSERT(rat.held() == plain.held.size());
        RC_ASSERT(rat.spilled() == plain.spilled.size());
    }
}

}  // namespace
}  // namespace moehub::sim::rat_test
