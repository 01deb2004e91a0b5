// Does every row get a place of its own, and only as much memory as it needs?
#include "sim/hub/aau_tables.hpp"

#include <moehub/error.hpp>

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::sim::pages_test {
namespace {

std::string error_of(PagedMemory& memory, RegionId region, std::uint32_t row) {
    try {
        memory.address(region, row);
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(PagedMemory, rows_of_one_piece_follow_one_another) {
    PagedMemory memory;
    const RegionId region = memory.add_region({"expert 0", 10, 4112, 0});
    const std::uint64_t base = memory.address(region, 0);
    EXPECT_EQ(base % 128, 0u);
    EXPECT_EQ(memory.address(region, 1), base + 4112);
    EXPECT_EQ(memory.address(region, 9), base + 9 * 4112);
}

TEST(PagedMemory, one_piece_is_reserved_at_once) {
    PagedMemory memory;
    const RegionId region = memory.add_region({"expert 0", 10, 4096, 0});
    EXPECT_EQ(memory.reserved(), 40960);
    EXPECT_EQ(memory.worst_case(), 40960);
    const Page page = memory.page(region, 7);
    EXPECT_EQ(page.begin, memory.address(region, 0));
    EXPECT_EQ(page.first_row, 0u);
    EXPECT_EQ(page.rows, 10u);
}

TEST(PagedMemory, a_page_is_handed_out_with_the_first_row_in_it) {
    PagedMemory memory;
    const RegionId region = memory.add_region({"expert 0", 1000, 256, 4});
    EXPECT_EQ(memory.reserved(), 0);
    EXPECT_EQ(memory.worst_case(), 256'000);
    memory.address(region, 0);
    EXPECT_EQ(memory.reserved(), 1024);
    memory.address(region, 3);
    EXPECT_EQ(memory.reserved(), 1024);
    EXPECT_THROW(memory.page(region, 4), std::logic_error);
    memory.address(region, 4);
    EXPECT_EQ(memory.reserved(), 2048);
    EXPECT_EQ(memory.page(region, 4).first_row, 4u);
}

TEST(PagedMemory, rows_beyond_the_last_full_page_are_not_for_use) {
    PagedMemory memory;
    const RegionId region = memory.add_region({"expert 0", 10, 256, 4});
    memory.address(region, 9);
    EXPECT_EQ(memory.page(region, 9).first_row, 8u);
    EXPECT_EQ(memory.page(region, 9).rows, 2u);
    EXPECT_EQ(memory.reserved(), 4 * 256);  // pages are of one size
    EXPECT_THROW(memory.address(region, 10), InputError);
}

TEST(PagedMemory, a_row_beyond_its_region_is_refused_with_name_and_sizes) {
    PagedMemory memory;
    const RegionId region = memory.add_region({"expert 3 on gpu 1", 64, 8192, 0});
    EXPECT_EQ(error_of(memory, region, 63), "");
    EXPECT_EQ(error_of(memory, region, 64),
              "expert 3 on gpu 1: its region has room for 64 rows of 8192 B and more arrive: "
              "--region-rows is too small");
}

TEST(PagedMemory, a_pool_used_up_refuses_the_next_page_and_only_that) {
    PagedMemory memory(2048);
    const RegionId one = memory.add_region({"expert 0 on gpu 1", 100, 256, 4});
    const RegionId two = memory.add_region({"expert 1 on gpu 1", 100, 256, 4});
    memory.add_region({"whole", 100, 256, 0});  // does not come from the pool
    memory.address(one, 0);
    memory.address(two, 0);
    const Bytes reserved = memory.reserved();
    EXPECT_EQ(error_of(memory, two, 4),
              "expert 1 on gpu 1: no page of 4 rows (1024 B) is left in the pool of 2048 B, of "
              "which 2048 B are in use: --page-pool is too small");
    EXPECT_EQ(memory.reserved(), reserved);
    EXPECT_EQ(error_of(memory, one, 3), "");
    memory.set_pool(3072);
    EXPECT_EQ(error_of(memory, two, 4), "");
}

TEST(PagedMemory, refuses_sizes_that_no_memory_has) {
    PagedMemory memory;
    EXPECT_THROW(memory.add_region({"none", 0, 128, 0}), InputError);
    EXPECT_THROW(memory.add_region({"negative", -1, 128, 0}), InputError);
    EXPECT_THROW(memory.add_region({"thin", 1, 0, 0}), InputError);
    EXPECT_THROW(memory.add_region({"long", std::int64_t{1} << 32, 1, 0}), InputError);
    EXPECT_THROW(memory.add_region({"large", 0xffff'ffff, Bytes{1} << 40, 0}), InputError);
    EXPECT_THROW(memory.add_region({"large page", 1, Bytes{1} << 40, 0xffff'ffff}), InputError);
    EXPECT_EQ(memory.regions(), 0u);
    EXPECT_EQ(memory.worst_case(), 0);
}

RC_GTEST_PROP(PagedMemory, no_two_rows_overlap, ()) {
    PagedMemory memory;
    const int regions = *rc::gen::inRange(1, 6);
    std::map<std::uint64_t, std::uint64_t> rows;  // begin → end
    for (int i = 0; i < regions; ++i) {
        memory.add_region({"region", *rc::gen::inRange(1, 50), *rc::gen::inRange(1, 500),
                           *rc::gen::inRange<std::uint32_t>(0, 60)});
    }
    for (std::uint32_t row = 0; row < 50; ++row) {
        for (RegionId region = 0; region < memory.regions(); ++region) {
            if (row >= memory.spec(region).rows) continue;
            const std::uint64_t begin = memory.address(region, row);
            rows[begin] = begin + static_cast<std::uint64_t>(memory.spec(region).row_bytes);
            RC_ASSERT(memory.page(region, row).begin % 128 == 0u);
            RC_ASSERT(memory.address(region, row) == begin);
        }
    }
    std::uint64_t end = 0;
    for (const auto& [row_begin, row_end] : rows) {
        RC_ASSERT(row_begin >= end);
        end = row_end;
    }
}

}  // namespace
}  // namespace moehub::sim::pages_test
