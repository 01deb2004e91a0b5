#include "base/utf8.hpp"
#include "report/number.hpp"
#include "report/progress.hpp"
#include "report/text_style.hpp"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

namespace moehub::table_test {
namespace {

TEST(Utf8, text_is_as_wide_as_its_columns) {
    EXPECT_EQ(display_width("37 µs × 2"), 9u);
    EXPECT_EQ(display_width("██▌"), 3u);
    EXPECT_EQ(display_width("e\xCC\x81"), 1u);
    EXPECT_EQ(display_width("日本"), 4u);
    EXPECT_EQ(display_width("\xFF"), 1u);
}

TEST(Utf8, is_valid_up_to_its_first_bad_byte) {
    EXPECT_EQ(first_bad_utf8("µ×日😀"), std::string("µ×日😀").size());
    EXPECT_EQ(first_bad_utf8("ab\xC2"), 2u);
    EXPECT_EQ(first_bad_utf8("\xC0\x80"), 0u);          // overlong
    EXPECT_EQ(first_bad_utf8("\xED\xA0\x80"), 0u);      // surrogate
    EXPECT_EQ(first_bad_utf8("\xF4\x90\x80\x80"), 0u);  // above U+10FFFF
}

TEST(Utf8, printable_text_is_one_harmless_line) {
    EXPECT_EQ(printable("a\nb\tµ\x1b[31m\x7f\xFF"), "a\\nb\\tµ\\x1b[31m\\x7f\\xff");
}

TEST(Table, columns_align_around_wide_characters) {
    TextTable table({{"name", TextTable::Align::left}, {"time"}});
    table.add({"gemm × 2", "37 µs"});
    table.add({"sum", "1.25 ms"});
    EXPECT_EQ(table.text(),
              "name         time\n"
              "────────  ───────\n"
              "gemm × 2    37 µs\n"
              "sum       1.25 ms\n");
}

TEST(Table, no_line_ends_in_blanks) {
    TextTable table({{"a"}, {"note", TextTable::Align::left}});
    table.add({"1", "long note"});
    table.add({"2"});
    EXPECT_EQ(table.text(),
              "a  note\n"
              "─  ─────────\n"
              "1  long note\n"
              "2\n");
}

TEST(Table, a_cell_is_always_one_line) {
    TextTable table({{"a", TextTable::Align::left}});
    table.add({"x\ny\x1b[0m"});
    EXPECT_EQ(table.text(), "a\n───────────\nx\\ny\\x1b[0m\n");
    EXPECT_THROW(table.add({"1", "2"}), std::logic_error);
}

TEST(Table, colour_is_only_for_terminals) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
    ASSERT_TRUE(file);
    EXPECT_FALSE(wants_colour(file.get()));
}

TEST(Numbers, have_as_many_digits_as_asked) {
    EXPECT_EQ(significant(0), "0");
    EXPECT_EQ(significant(0.012345), "0.0123");
    EXPECT_EQ(significant(1.005), "1.00");
    EXPECT_EQ(significant(9.996), "10.0");
    EXPECT_EQ(significant(99.96), "100");
    EXPECT_EQ(significant(-45.67), "-45.7");
    EXPECT_EQ(significant(999.6), "1,000");
    EXPECT_EQ(significant(1234567), "1,234,567");
    EXPECT_EQ(significant(std::nan("")), "nan");
}

TEST(Numbers, have_thousands_separated) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(-1234567), "-1,234,567");
}

TEST(Numbers, are_in_the_unit_that_fits) {
    EXPECT_EQ(duration(812e-9), "812 ns");
    EXPECT_EQ(duration(37.5e-6), "37.5 µs");
    EXPECT_EQ(duration(999.7e-6), "1.00 ms");
    EXPECT_EQ(duration(120), "120 s");
    EXPECT_EQ(byte_size(640), "640 B");
    EXPECT_EQ(byte_size(1073741824), "1.07 GB");
    EXPECT_EQ(percent(0.0123), "1.2 %");
    EXPECT_EQ(percent(0.5, true), "+50.0 %");
}

TEST(BarInATable, is_as_long_as_its_fraction) {
    EXPECT_EQ(bar(0, 4), "");
    EXPECT_EQ(bar(0.5, 4), "██");
    EXPECT_EQ(bar(0.625, 4), "██▌");
    EXPECT_EQ(bar(7, 2), "██");
    EXPECT_EQ(bar(std::nan(""), 2), "");
}

TEST(Progress, is_silent_where_nobody_watches) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
    ASSERT_TRUE(file);
    {
        Progress progress("work", file.get());
        progress.update(pieces_done(1, 2));
    }
    EXPECT_EQ(std::ftell(file.get()), 0);
}

}  // namespace
}  // namespace moehub::table_test
