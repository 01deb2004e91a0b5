// Does a region's memory notice what is missing, doubled or in the wrong row?
#include "sim/hub/row_memory.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace moehub::sim::row_memory_test {
namespace {

TEST(RowMemory, a_row_is_complete_when_all_lines_and_the_source_are_there) {
    RowMemory memory(300, 128, true, 0);
    memory.write({0, 7, 0, 128, nullptr});
    memory.write({0, 7, 256, 44, nullptr});
    memory.write_source(0, 7, 99);
    EXPECT_FALSE(memory.complete(0));
    memory.write({0, 7, 128, 128, nullptr});
    EXPECT_TRUE(memory.complete(0));
    EXPECT_EQ(memory.row_id(0), 7u);
    EXPECT_EQ(memory.source(0), 99u);
}

TEST(RowMemory, a_row_without_its_source_column_is_not_complete) {
    RowMemory memory(128, 128, true, 0);
    memory.write({0, 1, 0, 128, nullptr});
    EXPECT_FALSE(memory.complete(0));
}

TEST(RowMemory, a_line_twice_is_an_error) {
    RowMemory memory(256, 128, false, 0);
    memory.write({0, 1, 0, 256, nullptr});
    EXPECT_THROW(memory.write({0, 1, 128, 128, nullptr}), std::logic_error);
}

TEST(RowMemory, another_row_in_the_same_row_number_is_an_error) {
    RowMemory memory(256, 128, false, 0);
    memory.write({3, 1, 0, 128, nullptr});
    EXPECT_THROW(memory.write({3, 2, 128, 128, nullptr}), std::logic_error);
}

TEST(RowMemory, a_piece_beyond_the_row_or_between_lines_is_an_error) {
    RowMemory memory(256, 128, false, 0);
    EXPECT_THROW(memory.write({0, 1, 256, 128, nullptr}), std::logic_error);
    EXPECT_THROW(memory.write({0, 1, 64, 128, nullptr}), std::logic_error);
}

TEST(RowMemory, a_hole_is_not_complete) {
    RowMemory memory(128, 128, false, 0);
    memory.write({1, 5, 0, 128, nullptr});
    EXPECT_FALSE(memory.complete(0));
    EXPECT_TRUE(memory.complete(1));
}

TEST(RowMemory, numbers_lie_where_their_lines_were_written) {
    RowMemory memory(384, 128, false, 3);
    const double numbers[] = {1.5, 2.5, 3.5};
    memory.write({0, 5, 128, 256, numbers});
    memory.write({0, 5, 0, 128, numbers});
    EXPECT_EQ(memory.numbers(0)[0], 1.5);
    EXPECT_EQ(memory.numbers(0)[1], 2.5);
    EXPECT_EQ(memory.numbers(0)[2], 3.5);
}

/// A row's numbers are shared out over its lines as evenly as they go: each piece brings its own
/// and no others, whatever the lines, the numbers and the order in which pieces come.
TEST(RowMemory, each_piece_brings_its_own_numbers) {
    constexpr Bytes kLine = 128;
    constexpr std::uint32_t kRow = 2;
    for (const std::size_t lines : {1U, 2U, 3U, 7U, 70U})
        for (const std::size_t width : {1U, 2U, 3U, 5U, 14U, 70U, 97U})
            for (const std::size_t piece : {1U, 2U, 5U})
                for (const bool last_first : {false, true}) {
                    RowMemory memory(static_cast<Bytes>(lines) * kLine, kLine, false, width);
                    const std::size_t pieces = (lines + piece - 1) / piece;
                    for (std::size_t i = 0; i < pieces; ++i) {
                        const std::size_t which = last_first ? pieces - 1 - i : i;
                        const std::size_t first = which * piece;
                        const std::size_t count = std::min(piece, lines - first);
                        const std::vector<double> numbers(width, static_cast<double>(which));
                        memory.write({kRow, 9, static_cast<Bytes>(first) * kLine,
                                      static_cast<Bytes>(count) * kLine, numbers.data()});
                    }
                    const double* const got = memory.numbers(kRow);
                    EXPECT_TRUE(std::is_sorted(got, got + width));
                    for (std::size_t which = 0; which < pieces; ++which) {
                        const std::size_t count = std::min(piece, lines - which * piece);
                        const auto brought = static_cast<std::size_t>(
                            std::count(got, got + width, static_cast<double>(which)));
                        EXPECT_GE(brought, count * width / lines) << lines << " " << width;
                        EXPECT_LE(brought, (count * width + lines - 1) / lines) << lines;
                    }
                }
}

TEST(RowMemory, rows_of_more_than_64_lines_are_tracked_line_by_line) {
    RowMemory memory(200 * 128, 128, false, 0);
    memory.write({0, 5, 0, 100 * 128, nullptr});
    memory.write({0, 5, 101 * 128, 99 * 128, nullptr});
    EXPECT_FALSE(memory.complete(0));
    memory.write({0, 5, 100 * 128, 128, nullptr});
    EXPECT_TRUE(memory.complete(0));
}

}  // namespace
}  // namespace moehub::sim::row_memory_test
