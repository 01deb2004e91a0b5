// Does a table of groups know a list's GPUs and each one's targets, whatever their order and
// whatever else is in the table?
#include "sim/switch/group_table.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

namespace moehub::sim::group_table_test {
namespace {

template <class T>
std::vector<T> list(std::span<const T> some) {
    return {some.begin(), some.end()};
}

TEST(GroupTable, sorts_a_list_by_gpu_and_region) {
    GroupTable table;
    const GroupId group = table.add_list({{5, 1}, {2, 9}, {5, 0}, {2, 3}, {7, 4}});
    EXPECT_TRUE(table.is_list(group));
    EXPECT_EQ(list(table.members(group)), (std::vector<GpuId>{2, 5, 7}));
    EXPECT_EQ(list(table.regions(group, 0)), (std::vector<RegionId>{3, 9}));
    EXPECT_EQ(list(table.regions(group, 1)), (std::vector<RegionId>{0, 1}));
    EXPECT_EQ(list(table.regions(group, 2)), (std::vector<RegionId>{4}));
    EXPECT_EQ(list(table.regions_on(group, 5)), (std::vector<RegionId>{0, 1}));
    EXPECT_EQ(table.goals(group), 5u);
}

TEST(GroupTable, several_targets_on_one_gpu_are_one_member) {
    GroupTable table;
    const GroupId group = table.add_list({{3, 2}, {3, 1}, {3, 0}});
    EXPECT_EQ(list(table.members(group)), (std::vector<GpuId>{3}));
    EXPECT_EQ(list(table.regions_on(group, 3)), (std::vector<RegionId>{0, 1, 2}));
    EXPECT_EQ(table.goals(group), 3u);
}

TEST(GroupTable, a_region_number_may_be_on_several_gpus) {
    GroupTable table;
    const GroupId group = table.add_list({{1, 0}, {0, 0}});
    EXPECT_EQ(list(table.members(group)), (std::vector<GpuId>{0, 1}));
    EXPECT_EQ(list(table.regions_on(group, 0)), (std::vector<RegionId>{0}));
    EXPECT_EQ(list(table.regions_on(group, 1)), (std::vector<RegionId>{0}));
}

TEST(GroupTable, a_list_that_is_added_again_is_another_group) {
    GroupTable table;
    const GroupId first = table.add_list({{1, 0}});
    EXPECT_NE(table.add_list({{1, 0}}), first);
}

TEST(GroupTable, fixed_groups_and_lists_lie_beside_each_other) {
    GroupTable table;
    const GroupId fixed = table.add({4, 0});
    const GroupId some = table.add_list({{1, 7}, {0, 5}});
    const GroupId other = table.add({0, 1});
    const GroupId more = table.add_list({{0, 6}});
    EXPECT_EQ(std::set<GroupId>({fixed, some, other, more}).size(), 4u);
    EXPECT_FALSE(table.is_list(fixed));
    EXPECT_FALSE(table.is_list(other));
    EXPECT_TRUE(table.is_list(some));
    EXPECT_TRUE(table.is_list(more));
    EXPECT_EQ(table.add({0, 4}), fixed) << "equal ones are one";
    EXPECT_EQ(table.add({1, 0}), other) << "though a list has the same GPUs";
    EXPECT_EQ(list(table.members(fixed)), (std::vector<GpuId>{0, 4}));
    EXPECT_EQ(list(table.members(some)), (std::vector<GpuId>{0, 1}));
    EXPECT_EQ(list(table.members(other)), (std::vector<GpuId>{0, 1}));
    EXPECT_EQ(list(table.regions_on(some, 0)), (std::vector<RegionId>{5}));
    EXPECT_EQ(list(table.regions_on(some, 1)), (std::vector<RegionId>{7}));
    EXPECT_EQ(list(table.regions_on(more, 0)), (std::vector<RegionId>{6}));
    EXPECT_EQ(table.goals(some), 2u);
    EXPECT_EQ(table.goals(more), 1u);
    EXPECT_EQ(table.goals(fixed), 0u) << "no regions";
}

TEST(GroupTable, an_empty_list_or_a_target_twice_is_a_defect) {
    GroupTable table;
    EXPECT_THROW(table.add_list({}), std::logic_error);
    EXPECT_THROW(table.add_list({{1, 2}, {0, 2}, {1, 2}}), std::logic_error);
    const GroupId group = table.add_list({{1, 2}, {0, 2}});
    EXPECT_EQ(table.goals(group), 2u) << "what was refused left nothing behind";
    EXPECT_EQ(list(table.regions_on(group, 0)), (std::vector<RegionId>{2}));
}

TEST(GroupTable, a_gpu_that_is_not_in_a_list_has_no_part_of_it) {
    GroupTable table;
    table.add({0, 1, 2, 3});
    const GroupId group = table.add_list({{1, 0}, {3, 0}});
    for (const GpuId gpu : {GpuId{0}, GpuId{2}, GpuId{4}}) {
        EXPECT_THROW(table.regions_on(group, gpu), std::logic_error);
    }
}

TEST(GroupTable, random_lists_and_groups_keep_what_they_were_given) {
    std::mt19937 random(11);
    GroupTable table;
    std::map<GroupId, std::set<RowGoal>> lists;
    for (int i = 0; i < 300; ++i) {
        std::set<RowGoal> goals;
        for (auto n = 1 + random() % 20; n > 0; --n) {
            goals.insert({static_cast<GpuId>(random() % 8), static_cast<RegionId>(random() % 6)});
        }
        if (random() % 3 == 0) {
            table.add({static_cast<GpuId>(random() % 8), static_cast<GpuId>(8 + random() % 8)});
        }
        std::vector<RowGoal> shuffled(goals.begin(), goals.end());
        std::shuffle(shuffled.begin(), shuffled.end(), random);
        const GroupId id = table.add_list(shuffled);
        ASSERT_TRUE(lists.emplace(id, goals).second);
    }
    for (const auto& [id, goals] : lists) {
        std::set<RowGoal> found;
        const auto members = table.members(id);
        EXPECT_TRUE(std::is_sorted(members.begin(), members.end()));
        for (std::size_t i = 0; i < members.size(); ++i) {
            EXPECT_FALSE(table.regions(id, i).empty());
            for (const RegionId region : table.regions(id, i)) found.insert({members[i], region});
        }
        EXPECT_EQ(found, goals);
        EXPECT_EQ(table.goals(id), goals.size());
    }
}

}  // namespace
}  // namespace moehub::sim::group_table_test
