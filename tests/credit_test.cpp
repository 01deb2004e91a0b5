// Does a sender get its credits back when they are due, and not before?
#include "sim/wire.hpp"

#include <gtest/gtest.h>

namespace moehub::sim::credit_test {
namespace {

constexpr Ps kUpdate = 1 << 14;

TEST(CreditPool, grants_what_it_has_at_once) {
    CreditPool pool(18, 0, 250 * kNs);
    EXPECT_EQ(pool.ready(18, 7), 7);
    EXPECT_FALSE(pool.wanted());
}

TEST(CreditPool, refuses_what_it_lacks_and_asks_to_be_woken) {
    CreditPool pool(18, 0, 250 * kNs);
    pool.take(10);
    EXPECT_EQ(pool.ready(9, 7), kNever);
    EXPECT_TRUE(pool.wanted());
}

TEST(CreditPool, a_return_counts_from_the_update_after_its_arrival) {
    CreditPool pool(9, 0, 10 * kUpdate);
    pool.take(9);
    const Ps usable = pool.give(5, 9);
    EXPECT_EQ(usable, 11 * kUpdate);
    EXPECT_EQ(pool.ready(9, usable - 1), usable);  // not yet, but known
    EXPECT_EQ(pool.ready(9, usable), usable);
    EXPECT_FALSE(pool.wanted());
}

TEST(CreditPool, returns_add_up_in_order_of_time_whatever_their_order_of_giving) {
    CreditPool pool(0, 0, 2 * kUpdate);
    pool.give(3 * kUpdate, 4);
    pool.give(1 * kUpdate, 4);
    pool.give(900 * kUpdate, 4);  // beyond the ring
    pool.give(500 * kUpdate, 4);
    EXPECT_EQ(pool.ready(4, 0), 4 * kUpdate);
    EXPECT_EQ(pool.ready(8, 0), 6 * kUpdate);
    EXPECT_EQ(pool.ready(12, 0), 503 * kUpdate);
    EXPECT_EQ(pool.ready(16, 0), 903 * kUpdate);
    EXPECT_EQ(pool.ready(17, 0), kNever);
    EXPECT_EQ(pool.ready(16, 1000 * kUpdate), 1000 * kUpdate);
}

TEST(CreditPool, a_return_before_the_time_last_asked_for_counts_at_that_time) {
    CreditPool pool(9, 0, kUpdate);
    pool.take(9);
    EXPECT_EQ(pool.ready(9, 50 * kUpdate), kNever);
    pool.give(10 * kUpdate, 9);
    EXPECT_EQ(pool.ready(9, 50 * kUpdate), 50 * kUpdate);
}

TEST(CreditPool, a_train_may_overdraw_and_the_next_waits_until_that_is_paid) {
    CreditPool pool(10, 0, kUpdate);
    pool.take(100);
    const Ps usable = pool.give(0, 95);
    EXPECT_EQ(pool.ready(9, 0), kNever);
    EXPECT_EQ(pool.ready(5, 0), usable);
}

}  // namespace
}  // namespace moehub::sim::credit_test
