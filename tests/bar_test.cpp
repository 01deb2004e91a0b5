#include "base/utf8.hpp"
#include "report/number.hpp"
#include "report/text_style.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace moehub::bar_test {
namespace {

std::string bar_of(const std::vector<double>& values, double full, int width) {
    constexpr std::string_view kMarks[] = {"#", "=", "."};
    std::vector<BarPart> parts;
    for (std::size_t i = 0; i < values.size(); ++i) parts.push_back({values[i], kMarks[i]});
    return stacked_bar(parts, full, width);
}

TEST(Bar, is_divided_as_its_parts) {
    EXPECT_EQ(bar_of({5, 3, 2}, 10, 10), "#####===..");
    EXPECT_EQ(bar_of({5, 3, 2}, 20, 10), "###=.");
    EXPECT_EQ(bar_of({0, 1, 1}, 4, 8), "==..");
    EXPECT_EQ(bar_of({1, 0, 1}, 4, 8), "##..");
}

TEST(Bar, is_as_long_as_its_sum_however_divided) {
    for (int i = 0; i <= 100; ++i) {
        const double part = i / 100.0;
        EXPECT_EQ(bar_of({part, 1 - part, 0.37}, 2, 60).size(), 41u) << part;
    }
}

TEST(Bar, stays_within_its_width) {
    EXPECT_EQ(bar_of({50, 50}, 10, 6), "######");
    EXPECT_EQ(bar_of({5, 50}, 10, 6), "###===");
    EXPECT_EQ(bar_of({1}, 1, 0), "");
    EXPECT_EQ(bar_of({1}, 1, -3), "");
}

TEST(Bar, draws_nothing_for_no_time) {
    EXPECT_EQ(bar_of({0, 0, 0}, 10, 10), "");
    EXPECT_EQ(bar_of({-5, 5}, 10, 10), "=====");
    EXPECT_EQ(bar_of({1}, 0, 10), "");
    EXPECT_EQ(bar_of({1}, std::numeric_limits<double>::quiet_NaN(), 10), "");
    EXPECT_EQ(stacked_bar({}, 1, 10), "");
}

TEST(Bar, counts_wide_marks_as_columns) {
    const BarPart parts[] = {{1, "█"}, {1, "▒"}, {2, "·"}};
    EXPECT_EQ(stacked_bar(parts, 4, 8), "██▒▒····");
    EXPECT_EQ(display_width(stacked_bar(parts, 4, 8)), 8u);
}

TEST(Number, has_a_tenth_and_thousands) {
    EXPECT_EQ(tenths(0), "0.0");
    EXPECT_EQ(tenths(1234.56), "1,234.6");
    EXPECT_EQ(tenths(1234567), "1,234,567.0");
}

}  // namespace
}  // namespace moehub::bar_test
