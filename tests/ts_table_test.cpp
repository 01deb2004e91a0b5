// Is a tile that will not fill up told of with the last byte that it is to get, whether its size
// becomes known before or after?
#include "sim/hub/dam.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

namespace moehub::sim::ts_table_test {
namespace {

/// Seven rows in tiles of three: the last has one.
constexpr Bytes kRow = 256;
constexpr Dam::Range kRange = {
    .begin = 4096, .rows = 7, .group_rows = 3, .row_bytes = kRow, .data_bytes = kRow};

std::uint64_t row(std::uint32_t number) {
    return kRange.begin + number * static_cast<std::uint64_t>(kRow);
}

template <class Ready>
void expect_ready(const Ready& ready, BlockGroup group, Ps time) {
    ASSERT_TRUE(ready);
    EXPECT_EQ(ready->group, group);
    EXPECT_EQ(ready->time, time);
}

TEST(TsTable, a_partial_tile_is_ready_with_its_last_byte_and_not_before) {
    Dam table;
    const BlockGroup first = table.add(kRange);
    EXPECT_FALSE(table.expect(first, 2 * kRow));
    EXPECT_FALSE(table.acknowledged(row(0), kRow, 2, 10));
    EXPECT_FALSE(table.acknowledged(row(1), kRow - 1, 2, 11));
    expect_ready(table.acknowledged(row(1) + kRow - 1, 1, 1, 12), first, 12);
    EXPECT_EQ(table.stats().ready, 1);
}

TEST(TsTable, an_expectation_that_comes_last_tells_at_the_time_of_the_last_byte) {
    Dam table;
    const BlockGroup first = table.add(kRange);
    table.acknowledged(row(3), kRow, 2, 90);
    table.acknowledged(row(4), kRow, 2, 20);
    expect_ready(table.expect(first + 1, 2 * kRow), first + 1, 90);
    EXPECT_EQ(table.stats().ready, 1);
}

TEST(TsTable, an_expectation_between_two_rows_waits_for_the_second) {
    Dam table;
    const BlockGroup first = table.add(kRange);
    table.acknowledged(row(0), kRow, 2, 50);
    EXPECT_FALSE(table.expect(first, 2 * kRow));
    expect_ready(table.acknowledged(row(1), kRow, 2, 40), first, 50);
}

TEST(TsTable, the_expectation_of_a_full_tile_changes_nothing) {
    Dam table;
    const BlockGroup first = table.add(kRange);
    EXPECT_FALSE(table.expect(first, 3 * kRow));
    EXPECT_FALSE(table.expect(first + 2, kRow)) << "the last has room for one row";
    table.acknowledged(row(0), kRow, 2, 1);
    table.acknowledged(row(1), kRow, 2, 2);
    EXPECT_TRUE(table.acknowledged(row(2), kRow, 2, 3));
    EXPECT_FALSE(table.expect(first, 3 * kRow)) << "it was told of";
    EXPECT_TRUE(table.acknowledged(row(6), kRow, 2, 4));
    EXPECT_EQ(table.stats().ready, 2);
}

TEST(TsTable, more_or_less_than_a_tile_has_is_a_defect) {
    Dam table;
    const BlockGroup first = table.add(kRange);
    EXPECT_THROW(table.expect(first, 3 * kRow + 1), std::logic_error);
    EXPECT_THROW(table.expect(first + 2, 2 * kRow), std::logic_error);
    table.acknowledged(row(0), kRow, 2, 1);
    table.acknowledged(row(1), kRow, 2, 2);
    EXPECT_THROW(table.expect(first, kRow), std::logic_error) << "it has more";
}

TEST(TsTable, a_row_beyond_what_is_expected_is_a_defect) {
    Dam table;
    const BlockGroup first = table.add(kRange);
    table.expect(first, kRow);
    EXPECT_TRUE(table.acknowledged(row(0), kRow, 2, 1));
    EXPECT_THROW(table.acknowledged(row(1), kRow, 2, 2), std::logic_error);
}

TEST(TsTable, the_expectation_of_one_tile_leaves_the_others_alone) {
    Dam table;
    const BlockGroup first = table.add(kRange);
    table.expect(first + 1, kRow);
    table.acknowledged(row(0), kRow, 2, 1);
    table.acknowledged(row(1), kRow, 2, 2);
    EXPECT_TRUE(table.acknowledged(row(3), kRow, 2, 3));
    EXPECT_TRUE(table.acknowledged(row(2), kRow, 2, 4));
    EXPECT_TRUE(table.all_ready().empty());
    EXPECT_EQ(table.stats().released, 0);
    EXPECT_EQ(table.stats().deallocated, 1) << "that of one row";
}

TEST(TsTable, one_entry_reads_counters_back_and_loses_no_expectation) {
    constexpr Ps kRestore = 600 * kNs;
    Dam table({.counters = 1, .restore = kRestore});
    const BlockGroup first = table.add(kRange);
    table.expect(first + 1, 2 * kRow);
    EXPECT_FALSE(table.acknowledged(row(3), kRow, 2, 10));
    EXPECT_FALSE(table.acknowledged(row(0), kRow, 2, 20)) << "the other goes to memory";
    const auto ready = table.acknowledged(row(4), kRow, 2, 30);
    ASSERT_TRUE(ready);
    EXPECT_EQ(ready->group, first + 1);
    EXPECT_EQ(ready->time, 30 + kRestore);
    EXPECT_EQ(table.stats().restored, 1);
    EXPECT_FALSE(table.acknowledged(row(1), kRow, 2, 40));  // read back
    EXPECT_EQ(table.stats().restored, 2);
    EXPECT_EQ(table.acknowledged(row(2), kRow, 2, 50)->time, 40 + kRestore);
}

/// Random rows in random order, the expectation at a random moment, however few entries.
TEST(TsTable, every_tile_is_told_of_once_whenever_the_expectation_comes) {
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](unsigned long n) {
            return static_cast<std::uint32_t>(random() % n);
        };
        Dam::Range range = kRange;
        range.rows = 30;
        range.group_rows = 1 + below(9);
        const std::uint32_t rows = 1 + below(30);
        const int counters = static_cast<int>(1 + below(4));
        Dam table({.counters = counters, .restore = 0});
        const BlockGroup first = table.add(range);
        std::vector<std::uint32_t> order(rows);
        for (std::uint32_t i = 0; i < rows; ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        const std::uint32_t known_at = below(rows + 1);
        const std::uint32_t tiles = (rows - 1) / range.group_rows + 1;
        std::vector<Ps> latest(tiles), told(tiles, -1);
        const auto note = [&](const std::optional<Dam::Ready>& ready) {
            if (!ready) return;
            EXPECT_EQ(told.at(ready->group - first), -1) << "seed " << seed;
            told[ready->group - first] = ready->time;
        };
        for (std::uint32_t i = 0; i <= rows; ++i) {
            if (i == known_at && rows % range.group_rows != 0) {
                note(table.expect(first + tiles - 1, rows % range.group_rows * kRow));
            }
            if (i == rows) break;
            const Ps visible = Ps{below(1000)};
            Ps& last = latest[order[i] / range.group_rows];
            last = std::max(last, visible);
            note(table.acknowledged(row(order[i]), kRow, 2, visible));
        }
        EXPECT_EQ(told, latest) << "seed " << seed;
        EXPECT_EQ(table.stats().ready, tiles);
    }
}

}  // namespace
}  // namespace moehub::sim::ts_table_test
