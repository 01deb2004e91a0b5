// Do instructions leave the MultimemQ at entries / time of a fetch, and none before its list is
// there?
#include "sim/hub/multimem.hpp"

#include <gtest/gtest.h>

namespace moehub::sim::multimem_queue_test {
namespace {

constexpr Ps kFetch = 20 * kNs;

DysharpSpec queue_of(int entries) {
    DysharpSpec spec;
    spec.multimem_entries = entries;
    spec.list_fetch = kFetch;
    return spec;
}

TEST(MultimemQueue, one_packet_leaves_when_its_list_is_there) {
    MultimemQueue queue;
    EXPECT_EQ(queue.pass(queue_of(32), 1, 500), 500 + kFetch);
}

TEST(MultimemQueue, a_row_that_fits_is_fetched_together) {
    MultimemQueue full, over;
    EXPECT_EQ(full.pass(queue_of(32), 32, 0), kFetch);
    EXPECT_EQ(over.pass(queue_of(32), 33, 0), 2 * kFetch) << "one more waits for a free entry";
}

TEST(MultimemQueue, one_entry_fetches_one_list_after_the_other) {
    MultimemQueue queue;
    EXPECT_EQ(queue.pass(queue_of(1), 5, 0), 5 * kFetch);
    EXPECT_EQ(queue.pass(queue_of(1), 1, 0), 6 * kFetch);
    EXPECT_EQ(queue.pass(queue_of(1), 1, 100 * kFetch), 101 * kFetch) << "idle in between";
}

/// Rows posted at once, of fewer, as many and more packets than entries.
TEST(MultimemQueue, rows_pass_at_entries_over_fetch) {
    for (const int entries : {1, 4, 32, 50}) {
        for (const std::int64_t packets : {1, 7, 32, 112}) {
            MultimemQueue queue;
            const DysharpSpec spec = queue_of(entries);
            constexpr int kRows = 1000;
            Ps end = 0;
            for (int i = 0; i < kRows; ++i) {
                const Ps now = queue.pass(spec, packets, 0);
                EXPECT_GE(now, end) << "in their order";
                end = now;
            }
            const double closed = static_cast<double>(kRows * packets) * kFetch / entries;
            EXPECT_NEAR(static_cast<double>(end), closed, 2.0 * kFetch + 1e-3 * closed)
                << entries << " entries, rows of " << packets;
        }
    }
}

TEST(MultimemQueue, a_row_starts_when_the_entries_of_the_one_before_are_free) {
    MultimemQueue queue;
    const DysharpSpec spec = queue_of(32);
    EXPECT_EQ(queue.pass(spec, 64, 0), 2 * kFetch);
    // Posted during the fetch: behind it.
    EXPECT_EQ(queue.pass(spec, 32, kFetch / 2), 3 * kFetch);
    // Posted when the entries are free, and one picosecond before.
    EXPECT_EQ(queue.pass(spec, 1, 3 * kFetch), 4 * kFetch);
    MultimemQueue other;
    other.pass(spec, 32, 0);
    EXPECT_EQ(other.pass(spec, 1, kFetch - 1), 2 * kFetch);
    MultimemQueue idle;
    idle.pass(spec, 32, 0);
    EXPECT_EQ(idle.pass(spec, 1, kFetch + 1), 2 * kFetch + 1);
}

/// A row that leaves entries free does not hold up the next one for a whole fetch.
TEST(MultimemQueue, a_short_row_holds_its_share_of_the_queue) {
    MultimemQueue queue;
    const DysharpSpec spec = queue_of(32);
    EXPECT_EQ(queue.pass(spec, 8, 0), kFetch);
    EXPECT_EQ(queue.pass(spec, 8, 0), kFetch + kFetch / 4);
}

}  // namespace
}  // namespace moehub::sim::multimem_queue_test
