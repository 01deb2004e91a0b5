// Are rows shared out over the copies of an expert as the policy says?
#include "sim/hub/replicas.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace moehub::sim {
namespace {

const std::vector<std::uint32_t> kThree = {10, 20, 30};

std::vector<std::uint32_t> choices(ReplicaTable& table, std::uint32_t destination, int count) {
    std::vector<std::uint32_t> chosen;
    for (int i = 0; i < count; ++i) chosen.push_back(table.choose(destination));
    return chosen;
}

TEST(ReplicaTable, a_destination_with_one_endpoint_has_no_choice) {
    for (const auto policy : {ReplicaPolicy::round_robin, ReplicaPolicy::least_loaded}) {
        ReplicaTable table(policy, 5);
        const std::uint32_t only[] = {4'000'000'000};
        EXPECT_EQ(table.add(only), 0u);
        EXPECT_EQ(choices(table, 0, 3), (std::vector<std::uint32_t>(3, only[0])));
    }
}

TEST(ReplicaTable, round_robin_takes_turns) {
    ReplicaTable table(ReplicaPolicy::round_robin, 0);
    table.add(kThree);
    EXPECT_EQ(choices(table, 0, 4), (std::vector<std::uint32_t>{10, 20, 30, 10}));
}

TEST(ReplicaTable, destinations_and_producers_begin_with_different_endpoints) {
    for (std::uint32_t origin = 0; origin < 4; ++origin) {
        ReplicaTable table(ReplicaPolicy::round_robin, origin);
        for (std::uint32_t i = 0; i < 5; ++i) {
            const std::uint32_t destination = table.add(kThree);
            EXPECT_EQ(destination, i);
            EXPECT_EQ(table.choose(destination), kThree[(i + origin) % 3]);
        }
    }
}

TEST(ReplicaTable, each_destination_has_turns_of_its_own) {
    ReplicaTable table(ReplicaPolicy::round_robin, 0);
    table.add(kThree);
    table.add(kThree);
    EXPECT_EQ(table.choose(0), 10u);
    EXPECT_EQ(table.choose(0), 20u);
    EXPECT_EQ(table.choose(1), 20u);
    EXPECT_EQ(table.choose(0), 30u);
}

TEST(ReplicaTable, least_loaded_takes_the_endpoint_with_the_fewest_rows_sent) {
    ReplicaTable table(ReplicaPolicy::least_loaded, 0);
    const std::uint32_t one[] = {10};
    const std::uint32_t two[] = {10, 20};
    table.add(kThree);
    table.add(one);
    table.add(two);
    EXPECT_EQ(choices(table, 1, 2), (std::vector<std::uint32_t>{10, 10}));
    EXPECT_EQ(choices(table, 2, 1), (std::vector<std::uint32_t>{20}));
    EXPECT_EQ(table.sent(10), 2);
    EXPECT_EQ(table.choose(0), 30u);  // 2, 1, 0 sent
    EXPECT_EQ(table.choose(0), 20u);  // 2, 1, 1: after 30 the turn goes by 10 to 20
    EXPECT_EQ(table.choose(0), 30u);  // 2, 2, 1
}

TEST(ReplicaTable, of_equally_loaded_endpoints_each_has_its_turn) {
    ReplicaTable table(ReplicaPolicy::least_loaded, 1);
    table.add(kThree);
    EXPECT_EQ(choices(table, 0, 4), (std::vector<std::uint32_t>{20, 30, 10, 20}));
}

TEST(ReplicaTable, a_destination_without_endpoints_is_a_defect) {
    ReplicaTable table(ReplicaPolicy::least_loaded, 0);
    EXPECT_THROW(table.add({}), std::logic_error);
    EXPECT_EQ(table.add(kThree), 0u);
    EXPECT_EQ(table.sent(11), 0);
}

}  // namespace
}  // namespace moehub::sim
