// Are experts spread evenly, and do further copies go where rows are?
#include <moehub/error.hpp>
#include <moehub/placement.hpp>

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::placement_test {
namespace {

using Hosts = std::vector<std::vector<int>>;

std::string error_of(const Placement& placement, int experts) {
    try {
        check(placement, experts);
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(Placement, is_contiguous_and_even) {
    const Placement placement = contiguous_placement(8, 4);
    EXPECT_EQ(placement.ranks, 4);
    EXPECT_EQ(placement.hosts, (Hosts{{0}, {0}, {1}, {1}, {2}, {2}, {3}, {3}}));
}

TEST(Placement, gives_the_first_ranks_one_more_when_it_does_not_divide) {
    EXPECT_EQ(experts_by_rank(contiguous_placement(7, 3)), (Hosts{{0, 1, 2}, {3, 4}, {5, 6}}));
}

TEST(Placement, leaves_the_last_ranks_empty_when_there_are_fewer_experts) {
    EXPECT_EQ(experts_by_rank(contiguous_placement(2, 4)), (Hosts{{0}, {1}, {}, {}}));
}

TEST(Placement, refuses_no_experts_and_no_ranks) {
    EXPECT_THROW(contiguous_placement(0, 4), InputError);
    EXPECT_THROW(contiguous_placement(8, 0), InputError);
    EXPECT_THROW(contiguous_placement(8, -1), InputError);
}

TEST(PlacementReplicas, go_to_the_hottest_expert_on_the_coolest_rank) {
    const Placement placement = with_replicas(contiguous_placement(4, 4), {90, 10, 5, 20}, 1);
    EXPECT_EQ(placement.hosts, (Hosts{{0, 2}, {1}, {2}, {3}}));
}

TEST(PlacementReplicas, count_rows_per_copy) {
    // 90 / 2 = 45 is still more than 40; 90 / 3 = 30 is not.
    const Placement placement = with_replicas(contiguous_placement(4, 4), {90, 40, 5, 20}, 3);
    EXPECT_EQ(placement.hosts, (Hosts{{0, 2, 3}, {0, 1}, {2}, {3}}));
}

TEST(PlacementReplicas, spread_over_all_experts_when_rows_are_equal) {
    const Placement placement = with_replicas(contiguous_placement(4, 2), {0, 0, 0, 0}, 4);
    EXPECT_EQ(placement.hosts, (Hosts{{0, 1}, {0, 1}, {0, 1}, {0, 1}}));
}

TEST(PlacementReplicas, are_refused_when_every_rank_has_every_expert_or_rows_do_not_fit) {
    const Placement placement = contiguous_placement(4, 2);
    EXPECT_NO_THROW(with_replicas(placement, {1, 2, 3, 4}, 4));
    EXPECT_THROW(with_replicas(placement, {1, 2, 3, 4}, 5), InputError);
    EXPECT_THROW(with_replicas(placement, {1, 2, 3, 4}, -1), InputError);
    EXPECT_THROW(with_replicas(placement, {1, 2, 3}, 1), InputError);
    EXPECT_THROW(with_replicas(placement, {1, 2, 3, -4}, 1), InputError);
}

TEST(Placement, check_says_what_is_wrong) {
    EXPECT_EQ(error_of({2, {{0}, {0, 1}}}, 2), "");
    EXPECT_EQ(error_of({0, {{0}}}, 1), "placement: found 0 ranks, allowed: 1 or more");
    EXPECT_EQ(error_of({2, {{0}}}, 2), "placement: found 1 experts, allowed: the model's 2");
    EXPECT_EQ(error_of({2, {{0}, {}}}, 2),
              "placement: expert 1: found on no rank, allowed: at least one");
    EXPECT_EQ(error_of({2, {{0}, {2}}}, 2),
              "placement: expert 1: found on rank 2, allowed: 0 to 1");
    EXPECT_EQ(error_of({2, {{-1}, {0}}}, 2),
              "placement: expert 0: found on rank -1, allowed: 0 to 1");
    EXPECT_EQ(error_of({2, {{0}, {1, 1}}}, 2),
              "placement: expert 1: found twice on rank 1, allowed: once");
    EXPECT_EQ(error_of({2, {{1, 0}}}, 1),
              "placement: expert 0: found on rank 0 after rank 1, allowed: ascending");
}

RC_GTEST_PROP(PlacementReplicas, keep_all_hosts_and_add_as_many_as_asked, ()) {
    const int experts = *rc::gen::inRange(1, 40), ranks = *rc::gen::inRange(1, 12);
    const int redundant = *rc::gen::inRange(0, experts * (ranks - 1) + 1);
    const auto rows = *rc::gen::container<std::vector<long long>>(
        static_cast<std::size_t>(experts), rc::gen::inRange<long long>(0, 1000));
    const Placement before = contiguous_placement(experts, ranks);
    const Placement after = with_replicas(before, rows, redundant);
    check(after, experts);
    std::size_t copies = 0;
    for (std::size_t expert = 0; expert < after.hosts.size(); ++expert) {
        copies += after.hosts[expert].size();
        const int host = before.hosts[expert].front();
        RC_ASSERT(std::count(after.hosts[expert].begin(), after.hosts[expert].end(), host) == 1);
    }
    RC_ASSERT(copies == static_cast<std::size_t>(experts + redundant));
    std::size_t by_rank = 0;
    for (const auto& list : experts_by_rank(after)) {
        RC_ASSERT(std::is_sorted(list.begin(), list.end()));
        by_rank += list.size();
    }
    RC_ASSERT(by_rank == copies);
}

}  // namespace
}  // namespace moehub::placement_test
