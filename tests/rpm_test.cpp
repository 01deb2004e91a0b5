// Do lines leave in the right order at the right time?
#include "sim/hub/rpm.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::sim::rpm_test {
namespace {

constexpr Ps kTimer = kUs;

/// `bytes` of a 128 B line, stored at `time`.
RpmLine store_of(TransferId transfer, std::uint32_t index, std::uint32_t bytes, Ps time) {
    RpmLine line;
    line.transfer = transfer;
    line.index = index;
    line.row_id = transfer;
    line.bytes = bytes;
    line.whole = 128;
    line.since = line.last = time;
    return line;
}

RpmLine train_of(TransferId transfer, std::uint16_t packets) {
    RpmLine line = store_of(transfer, 0, 128u * packets, 0);
    line.whole = line.bytes;
    line.packets = packets;
    return line;
}

struct Rpm : ::testing::Test {
    RpmStats stats;
    RpmPartition partition{4, kTimer};

    void store(const RpmLine& line) { partition.add(line, stats); }
    /// Takes the next line, which must be allowed to leave.
    RpmLine next(Ps now) {
        const auto choice = partition.choose(0, now);
        EXPECT_TRUE(choice && choice->from <= now);
        return partition.take(choice->slot, stats);
    }
    /// From when on the next line may leave; kNever: none is there.
    Ps from(Ps now) {
        const auto choice = partition.choose(0, now);
        return choice ? choice->from : kNever;
    }
};

TEST_F(Rpm, is_empty_at_first) {
    EXPECT_EQ(partition.used(), 0);
    EXPECT_EQ(from(0), kNever);
}

TEST_F(Rpm, a_line_not_full_leaves_when_its_timer_runs_out_and_not_before) {
    store(store_of(1, 0, 64, 100));
    EXPECT_EQ(from(100 + kTimer - 1), 100 + kTimer);
    EXPECT_EQ(from(100 + kTimer), 100 + kTimer);
    EXPECT_EQ(next(100 + kTimer).bytes, 64u);
    EXPECT_EQ(stats.timed_out, 1);
    EXPECT_EQ(stats.full, 0);
}

TEST_F(Rpm, a_full_line_leaves_at_its_last_store_and_not_before) {
    store(store_of(1, 0, 128, 500));
    EXPECT_EQ(from(499), 500);
    EXPECT_EQ(from(500), 500);
}

TEST_F(Rpm, a_line_that_may_still_grow_does_not_hold_up_others) {
    store(store_of(1, 0, 32, 0));
    RpmLine low = store_of(9, 0, 128, 10);
    low.low_priority = true;
    store(low);
    EXPECT_EQ(next(10).transfer, 9u);
    EXPECT_EQ(from(10), kTimer);
}

TEST_F(Rpm, a_line_whose_timer_ran_out_is_as_good_as_full) {
    store(store_of(1, 0, 32, 0));
    store(store_of(2, 0, 128, 0));
    EXPECT_EQ(next(kTimer).transfer, 1u);
    EXPECT_EQ(next(kTimer).transfer, 2u);
}

TEST_F(Rpm, high_priority_goes_before_low_whatever_the_rows) {
    RpmLine low = store_of(1, 0, 128, 0);
    low.low_priority = true;
    store(low);
    store(store_of(5, 0, 128, 0));
    EXPECT_EQ(next(0).transfer, 5u);
    EXPECT_EQ(next(0).transfer, 1u);
}

TEST_F(Rpm, the_smallest_row_goes_first_then_its_lowest_line) {
    store(store_of(3, 0, 128, 0));
    store(store_of(2, 9, 128, 1));
    store(store_of(2, 4, 128, 2));
    store(store_of(0xffff'ffff, 0, 128, 3));
    const Ps now = 3;
    EXPECT_EQ(next(now).index, 4u);
    EXPECT_EQ(next(now).index, 9u);
    EXPECT_EQ(next(now).transfer, 3u);
    EXPECT_EQ(next(now).transfer, 0xffff'ffffu);
}

TEST_F(Rpm, what_may_leave_now_goes_before_a_smaller_row_that_may_later) {
    store(store_of(1, 0, 128, 50));
    store(store_of(2, 0, 128, 40));
    EXPECT_EQ(from(0), 40);
    EXPECT_EQ(next(40).transfer, 2u);
    EXPECT_EQ(next(50).transfer, 1u);
}

TEST_F(Rpm, each_uplink_sees_its_own_lines) {
    RpmLine other = store_of(1, 0, 128, 0);
    other.plane = 3;
    store(other);
    EXPECT_EQ(from(0), kNever);
    store(store_of(2, 0, 128, 0));
    EXPECT_FALSE(partition.choose(2, 0));
    EXPECT_FALSE(partition.choose(255, 0));
    EXPECT_EQ(partition.take(partition.choose(3, 0)->slot, stats).transfer, 1u);
    EXPECT_EQ(partition.take(partition.choose(0, 0)->slot, stats).transfer, 2u);
}

TEST_F(Rpm, a_full_partition_takes_no_new_line) {
    for (TransferId i = 0; i < 4; ++i) {
        EXPECT_TRUE(partition.fits());
        store(store_of(i, 0, 32, 0));
    }
    EXPECT_FALSE(partition.fits());
    EXPECT_THROW(store(store_of(9, 0, 32, 0)), std::logic_error);
    EXPECT_EQ(next(kTimer).transfer, 0u);
    EXPECT_TRUE(partition.fits());
}

TEST_F(Rpm, a_partition_of_one_entry_passes_one_line_at_a_time) {
    partition = RpmPartition(1, kTimer);
    store(store_of(1, 0, 128, 1));
    EXPECT_FALSE(partition.fits());
    next(1);
    EXPECT_TRUE(partition.fits());
    store(store_of(1, 1, 128, 2));
    EXPECT_EQ(next(2).index, 1u);
}

TEST_F(Rpm, a_train_takes_the_room_of_its_packets) {
    store(train_of(1, 3));
    EXPECT_EQ(partition.used(), 3);
    EXPECT_TRUE(partition.fits());
    EXPECT_EQ(next(0).packets, 3);
    EXPECT_EQ(stats.packets, 3);
    EXPECT_EQ(stats.full, 3);
    EXPECT_EQ(stats.deepest, 3);
}

TEST_F(Rpm, a_train_enters_when_its_first_packet_fits) {
    store(store_of(1, 0, 128, 0));
    EXPECT_TRUE(partition.fits());
    store(train_of(2, 64));
    EXPECT_EQ(partition.used(), 65);
    EXPECT_FALSE(partition.fits());
    EXPECT_THROW(store(train_of(3, 64)), std::logic_error);
    next(0);
    EXPECT_FALSE(partition.fits());
    next(0);
    EXPECT_TRUE(partition.fits());
}

TEST_F(Rpm, bytes_that_a_line_has_no_room_for_are_a_defect) {
    EXPECT_THROW(store(store_of(2, 0, 129, 0)), std::logic_error);
    EXPECT_THROW(store(store_of(2, 0, 0, 0)), std::logic_error);
}

TEST_F(Rpm, a_partition_of_a_million_lines_gives_them_out_in_order) {
    constexpr TransferId count = 1 << 20;
    partition = RpmPartition(count, kTimer);
    for (TransferId i = 0; i < count; ++i) store(store_of(i * 7919 % count, 0, 128, 0));
    EXPECT_FALSE(partition.fits());
    for (TransferId i = 0; i < count; ++i) ASSERT_EQ(next(0).transfer, i);
}

// An RPM partition that looks at every line.
struct PlainPartition {
    std::vector<RpmLine> lines;

    bool holds(const RpmLine& line) const {
        return std::any_of(lines.begin(), lines.end(), [&](const RpmLine& other) {
            return other.transfer == line.transfer && other.index == line.index &&
                   other.low_priority == line.low_priority;
        });
    }
    static Ps from(const RpmLine& line) {
        return line.bytes == line.whole ? line.last : std::max(line.last, line.since + kTimer);
    }
    const RpmLine* choose(std::uint8_t plane, Ps now) const {
        const auto rank = [&](const RpmLine& line) {
            return std::tuple(std::max(from(line), now), line.low_priority, line.row_id, line.index,
                              line.transfer);
        };
        const RpmLine* best = nullptr;
        for (const RpmLine& line : lines) {
            if (line.plane != plane) continue;
            if (best == nullptr || rank(line) < rank(*best)) best = &line;
        }
        return best;
    }
};

RC_GTEST_PROP(RpmProperty, agrees_with_looking_at_every_line, ()) {
    const int entries = *rc::gen::inRange(1, 12);
    RpmPartition partition(entries, kTimer);
    PlainPartition plain;
    RpmStats stats;
    Ps now = 0;
    const int steps = *rc::gen::inRange(1, 200);
    for (int step = 0; step < steps; ++step) {
        now += *rc::gen::element<Ps>(0, 0, 1, kTimer / 8, kTimer / 2);
        RpmLine line =
            store_of(*rc::gen::inRange<TransferId>(0, 4), *rc::gen::inRange<std::uint32_t>(0, 4),
                     32, now + *rc::gen::element<Ps>(0, 0, 3, kTimer / 4));
        line.bytes *= *rc::gen::element(1u, 1u, 4u);
        line.plane = static_cast<std::uint8_t>(line.index % 2);
        line.row_id = 3 - line.transfer / 2;
        line.low_priority = *rc::gen::element(false, false, true);
        const bool held = plain.holds(line);
        RC_ASSERT(partition.fits() == (plain.lines.size() < static_cast<std::size_t>(entries)));
        if (!held && partition.fits()) {
            plain.lines.push_back(line);
            partition.add(line, stats);
        }
        const auto plane = *rc::gen::inRange<std::uint8_t>(0, 2);
        const auto choice = partition.choose(plane, now);
        const RpmLine* best = plain.choose(plane, now);
        RC_ASSERT(choice.has_value() == (best != nullptr));
        if (!choice) continue;
        RC_ASSERT(choice->from == PlainPartition::from(*best));
        if (choice->from > now) continue;
        const RpmLine taken = partition.take(choice->slot, stats);
        RC_ASSERT(taken.transfer == best->transfer);
        RC_ASSERT(taken.index == best->index);
        RC_ASSERT(taken.low_priority == best->low_priority);
        RC_ASSERT(taken.bytes == best->bytes);
        plain.lines.erase(plain.lines.begin() + (best - plain.lines.data()));
    }
    RC_ASSERT(partition.used() == static_cast<std::int32_t>(plain.lines.size()));
    RC_ASSERT(stats.stores - stats.merged == stats.packets + partition.used());
    RC_ASSERT(stats.full + stats.timed_out == stats.packets);
}

}  // namespace
}  // namespace moehub::sim::rpm_test
