// Is a token ready when the last of its experts is through with it, and not before, however few
// counts the table holds?
#include "sim/hub/multimem.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace moehub::sim::or_table_test {
namespace {

constexpr Ps kRestore = 600 * kNs;

TEST(OrTable, a_token_is_ready_with_the_last_of_its_experts_and_not_before) {
    OrTable table(16, kRestore);
    table.expect(7, 4);
    for (const Ps now : {100, 200, 300}) EXPECT_FALSE(table.add(7, now));
    const auto ready = table.add(7, 400);
    ASSERT_TRUE(ready);
    EXPECT_EQ(*ready, 400);
    EXPECT_EQ(table.stats().updates, 4);
    EXPECT_EQ(table.stats().ready, 1);
    EXPECT_EQ(table.stats().restored, 0);
}

TEST(OrTable, a_token_of_one_expert_is_ready_at_once) {
    OrTable table(1, kRestore);
    table.expect(0, 1);
    EXPECT_EQ(table.add(0, 5), Ps{5});
}

TEST(OrTable, tokens_count_by_themselves) {
    OrTable table(16, kRestore);
    table.expect(1, 2);
    table.expect(2, 2);
    EXPECT_FALSE(table.add(1, 10));
    EXPECT_FALSE(table.add(2, 11));
    EXPECT_EQ(table.add(2, 12), Ps{12});
    EXPECT_EQ(table.add(1, 13), Ps{13});
}

TEST(OrTable, what_nobody_expects_is_a_defect) {
    OrTable table(16, kRestore);
    EXPECT_THROW(table.add(3, 0), std::logic_error);
    table.expect(3, 2);
    EXPECT_THROW(table.add(4, 0), std::logic_error);
    table.add(3, 1);
    table.add(3, 2);
    EXPECT_THROW(table.add(3, 3), std::logic_error) << "one too often";
    EXPECT_EQ(table.stats().updates, 2);
}

TEST(OrTable, a_token_is_expected_once_and_of_some_expert) {
    OrTable table(16, kRestore);
    EXPECT_THROW(table.expect(3, 0), std::logic_error);
    table.expect(3, 2);
    EXPECT_THROW(table.expect(3, 2), std::logic_error);
}

/// An expectation takes no entry: counts do, from the first expert on.
TEST(OrTable, one_entry_spills_and_restores) {
    OrTable table(1, kRestore);
    table.expect(1, 2);
    table.expect(2, 2);
    EXPECT_FALSE(table.add(1, 100));
    EXPECT_FALSE(table.add(2, 200)) << "1 goes to memory";
    EXPECT_EQ(table.stats().restored, 0);
    const auto first = table.add(1, 300);
    ASSERT_TRUE(first);
    EXPECT_EQ(*first, 300 + kRestore);
    const auto second = table.add(2, 400);
    ASSERT_TRUE(second);
    EXPECT_EQ(*second, 400 + kRestore) << "2 went to memory for 1";
    EXPECT_EQ(table.stats().restored, 2);
}

TEST(OrTable, an_update_that_comes_during_a_restore_is_ready_when_that_ends_and_not_before) {
    OrTable table(1, kRestore);
    table.expect(1, 3);
    table.expect(2, 1);
    EXPECT_FALSE(table.add(1, 100));
    EXPECT_EQ(table.add(2, 150), Ps{150});
    EXPECT_FALSE(table.add(1, 200));  // read back until then + kRestore
    EXPECT_EQ(table.add(1, 201), 200 + kRestore);
    EXPECT_EQ(table.stats().restored, 1);
}

/// Two entries for three tokens of two experts each: one expert of tokens 1 and 2 has come.
OrTable two_begun() {
    OrTable table(2, kRestore);
    for (const std::uint32_t token : {1u, 2u, 3u}) table.expect(token, 2);
    table.add(1, 10);
    table.add(2, 20);
    return table;
}

TEST(OrTable, a_ready_token_gives_its_entry_back) {
    OrTable table = two_begun();
    EXPECT_EQ(table.add(2, 30), Ps{30});
    table.add(3, 40);  // where 2 was, though 1 is older
    EXPECT_EQ(table.add(1, 50), Ps{50});
    EXPECT_EQ(table.add(3, 60), Ps{60});
    EXPECT_EQ(table.stats().restored, 0);
}

TEST(OrTable, the_oldest_goes_to_memory) {
    OrTable table = two_begun();
    table.add(3, 30);
    EXPECT_EQ(table.add(3, 40), Ps{40});
    EXPECT_EQ(table.add(2, 50), Ps{50});
    EXPECT_EQ(table.add(1, 60), 60 + kRestore);
}

/// Against a count per token, in random orders: what is ready, when at the earliest and at the
/// latest, and that nothing is read back where all counts fit.
TEST(OrTable, every_token_is_ready_once_in_any_order_and_size) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](unsigned long n) {
            return static_cast<std::uint32_t>(random() % n);
        };
        const int entries = static_cast<int>(1 + below(20));
        const std::uint32_t tokens = 1 + below(20);
        OrTable table(entries, kRestore);
        std::map<std::uint32_t, std::uint32_t> missing;
        std::vector<std::uint32_t> updates;
        for (std::uint32_t token = 0; token < tokens; ++token) {
            missing[token] = 1 + below(8);
            table.expect(token, missing[token]);
            updates.insert(updates.end(), missing[token], token);
        }
        std::shuffle(updates.begin(), updates.end(), random);
        Ps now = 0;
        for (const std::uint32_t token : updates) {
            now += kUs;  // longer than a restore
            const auto ready = table.add(token, now);
            ASSERT_EQ(ready.has_value(), --missing[token] == 0) << "seed " << seed;
            if (!ready) continue;
            EXPECT_GE(*ready, now);
            EXPECT_LE(*ready, now + kRestore);
        }
        EXPECT_EQ(table.stats().updates, static_cast<std::int64_t>(updates.size()));
        EXPECT_EQ(table.stats().ready, tokens);
        if (static_cast<std::uint32_t>(entries) >= tokens) {
            EXPECT_EQ(table.stats().restored, 0);
        }
    }
}

}  // namespace
}  // namespace moehub::sim::or_table_test
