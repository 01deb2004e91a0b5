// Is a row block reported when all its data is there, and not one packet before?
#include "sim/hub/dam.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::sim::dam_test {
namespace {

constexpr Dam::Range kRange = {
    .begin = 4096, .rows = 5, .group_rows = 2, .row_bytes = 272, .data_bytes = 256};

std::uint64_t row(std::uint32_t number) {
    return kRange.begin + number * 272;
}

TEST(Dam, a_group_is_ready_with_its_last_byte_and_not_before) {
    Dam dam;
    const BlockGroup first = dam.add(kRange);
    EXPECT_EQ(dam.groups(), 3u);
    EXPECT_FALSE(dam.acknowledged(row(0), 128, 1, 10));
    EXPECT_FALSE(dam.acknowledged(row(0) + 128, 128, 1, 11));
    EXPECT_FALSE(dam.acknowledged(row(1), 128, 1, 12));
    EXPECT_FALSE(dam.acknowledged(row(1) + 128, 127, 1, 13));
    EXPECT_EQ(dam.counted(first), 511);
    const auto ready = dam.acknowledged(row(1) + 255, 1, 1, 14);
    ASSERT_TRUE(ready);
    EXPECT_EQ(ready->group, first);
    EXPECT_EQ(ready->time, 14);
    EXPECT_EQ(dam.stats().ready, 1);
    EXPECT_EQ(dam.stats().updates, 5);
}

TEST(Dam, a_group_is_ready_when_the_last_of_its_data_is_visible_whatever_the_order_of_calls) {
    Dam dam;
    dam.add(kRange);
    dam.acknowledged(row(0), 256, 2, 90);
    const auto ready = dam.acknowledged(row(1), 256, 2, 20);
    ASSERT_TRUE(ready);
    EXPECT_EQ(ready->time, 90);
}

TEST(Dam, the_last_group_of_a_range_may_have_fewer_rows) {
    Dam dam;
    const BlockGroup first = dam.add(kRange);
    const auto ready = dam.acknowledged(row(4), 256, 2, 7);
    ASSERT_TRUE(ready);
    EXPECT_EQ(ready->group, first + 2);
}

TEST(Dam, the_source_column_does_not_count) {
    Dam dam;
    const BlockGroup first = dam.add(kRange);
    EXPECT_FALSE(dam.acknowledged(row(4) + 256, 16, 1, 500));
    EXPECT_EQ(dam.counted(first + 2), 0);
    EXPECT_EQ(dam.stats().updates, 0);
    const auto ready = dam.acknowledged(row(4), 272, 3, 7);  // a train that ends with it
    ASSERT_TRUE(ready);
    EXPECT_EQ(ready->time, 7);
    EXPECT_EQ(dam.counted(first + 2), 256);
    EXPECT_FALSE(dam.acknowledged(row(4) + 256, 16, 1, 900));
    EXPECT_EQ(dam.stats().updates, 3);
}

TEST(Dam, what_lies_in_no_range_is_ignored) {
    Dam dam;
    EXPECT_FALSE(dam.acknowledged(0, 128, 1, 1));
    dam.add(kRange);
    EXPECT_FALSE(dam.acknowledged(kRange.begin - 1, 1, 1, 1));
    EXPECT_FALSE(dam.acknowledged(row(5), 1, 1, 1));
    EXPECT_EQ(dam.stats().updates, 0);
}

TEST(Dam, ranges_added_in_any_order_find_their_own_groups) {
    Dam dam;
    Dam::Range range{.rows = 2, .group_rows = 1, .row_bytes = 128, .data_bytes = 128};
    std::vector<std::pair<std::uint64_t, BlockGroup>> added;
    for (const std::uint64_t begin : {5000u, 1000u, 3000u, 9000u, 3256u}) {
        range.begin = begin;
        added.emplace_back(begin, dam.add(range));
    }
    EXPECT_EQ(dam.stats().entries, 5);
    for (const auto& [begin, group] : added) {
        EXPECT_EQ(dam.acknowledged(begin + 128, 128, 1, 1)->group, group + 1);
        EXPECT_EQ(dam.acknowledged(begin, 128, 1, 1)->group, group);
    }
}

TEST(Dam, ranges_that_overlap_are_a_defect) {
    Dam dam;
    dam.add(kRange);
    Dam::Range other = kRange;
    EXPECT_THROW(dam.add(other), std::logic_error);
    other.begin = row(5) - 1;
    EXPECT_THROW(dam.add(other), std::logic_error);
    other.begin = kRange.begin - 5 * 272 + 1;
    EXPECT_THROW(dam.add(other), std::logic_error);
    other.begin = row(5);
    EXPECT_NO_THROW(dam.add(other));
    EXPECT_EQ(dam.stats().entries, 2);
}

TEST(Dam, empty_ranges_are_a_defect) {
    Dam dam;
    for (const auto field : {0, 1, 2, 3}) {
        Dam::Range range = kRange;
        if (field == 0) range.rows = 0;
        if (field == 1) range.group_rows = 0;
        if (field == 2) range.data_bytes = 0;
        if (field == 3) range.data_bytes = range.row_bytes + 1;
        EXPECT_THROW(dam.add(range), std::logic_error);
    }
}

TEST(Dam, a_line_that_comes_twice_is_a_defect) {
    Dam dam;
    dam.add(kRange);
    dam.acknowledged(row(4), 128, 1, 1);
    EXPECT_THROW(dam.acknowledged(row(4), 256, 2, 1), std::logic_error);
    dam.acknowledged(row(4) + 128, 128, 1, 1);
    EXPECT_THROW(dam.acknowledged(row(4), 1, 1, 1), std::logic_error);
}

TEST(Dam, an_acknowledgement_across_rows_is_a_defect) {
    Dam dam;
    dam.add(kRange);
    EXPECT_THROW(dam.acknowledged(row(0) + 200, 128, 1, 1), std::logic_error);
}

TEST(Dam, all_ready_releases_what_is_partly_filled_and_deallocates_what_is_empty) {
    Dam dam;
    const BlockGroup first = dam.add(kRange);
    Dam::Range other = kRange;
    other.begin = 100'000;
    const BlockGroup second = dam.add(other);
    dam.acknowledged(other.begin, 256, 2, 1);  // half of a group of two rows
    dam.acknowledged(row(2), 256, 2, 1);
    dam.acknowledged(row(4), 256, 2, 1);  // ready
    EXPECT_EQ(dam.all_ready(), (std::vector<BlockGroup>{first + 1, second}));
    EXPECT_EQ(dam.stats().ready, 1);
    EXPECT_EQ(dam.stats().released, 2);
    EXPECT_EQ(dam.stats().deallocated, 3);
    EXPECT_THROW(dam.all_ready(), std::logic_error);
    EXPECT_THROW(dam.acknowledged(row(3), 256, 2, 1), std::logic_error);
    EXPECT_FALSE(dam.acknowledged(row(3) + 256, 16, 1, 1));  // a late source column
}

RC_GTEST_PROP(Dam, every_group_is_ready_once_at_the_time_of_its_latest_line, ()) {
    Dam::Range range;
    range.begin = 128;
    range.rows = *rc::gen::inRange<std::uint32_t>(1, 20);
    range.group_rows = *rc::gen::inRange<std::uint32_t>(1, 8);
    range.data_bytes = *rc::gen::inRange(1, 600);
    range.row_bytes = range.data_bytes + *rc::gen::inRange(0, 32);
    Dam dam;
    dam.add(range);
    struct Line {
        std::uint32_t row;
        Bytes offset;
        Ps visible;
    };
    std::vector<Line> lines;
    std::vector<Ps> latest(dam.groups());
    for (std::uint32_t number = 0; number < range.rows; ++number) {
        for (Bytes offset = 0; offset < range.row_bytes; offset += 128) {
            const Ps visible = *rc::gen::inRange(0, 1000);
            lines.push_back({number, offset, visible});
            Ps& group = latest[number / range.group_rows];
            if (offset < range.data_bytes) group = std::max(group, visible);
        }
    }
    for (std::size_t i = lines.size(); i > 1; --i) {
        std::swap(lines[i - 1], lines[*rc::gen::resize(1000, rc::gen::inRange<std::size_t>(0, i))]);
    }
    std::vector<Ps> seen(dam.groups(), -1);
    for (const Line& line : lines) {
        const Bytes bytes = std::min<Bytes>(128, range.row_bytes - line.offset);
        const auto address =
            range.begin + static_cast<std::uint64_t>(line.row * range.row_bytes + line.offset);
        const auto ready = dam.acknowledged(address, bytes, 1, line.visible);
        if (!ready) continue;
        RC_ASSERT(seen[ready->group] == -1);
        seen[ready->group] = ready->time;
    }
    RC_ASSERT(seen == latest);
    RC_ASSERT(dam.all_ready().empty());
}

}  // namespace
}  // namespace moehub::sim::dam_test
