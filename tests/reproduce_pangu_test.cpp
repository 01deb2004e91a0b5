// Are Pangu Ultra MoE's runs as published, and does the page in the docs say so?
#include "answers/question.hpp"
#include "report/answer_forms.hpp"

#include <moehub/error.hpp>
#include <moehub/reproduce.hpp>

#include <fstream>
#include <iterator>
#include <sstream>

#include <gtest/gtest.h>

namespace moehub::reproduce_pangu_test {
namespace {

Reproduction figure(const char* name) {
    ReproduceOptions options;
    options.figure = name;
    return reproduce("pangu", options);
}

TEST(ReproducePangu, has_its_parameters) {
    const Reproduction all = figure("parameters");
    ASSERT_EQ(all.numbers.size(), 2u);
    for (const PublishedNumber& one : all.numbers) EXPECT_NEAR(one.ratio(), 1, 0.006) << one.what;
    EXPECT_THROW(figure("batch"), InputError);
}

#ifndef MOEHUB_SANITIZED  // half a minute of simulated layers, which other tests run smaller
/// The bar: MFU within two points, before and after; and what the page has in its table.
TEST(ReproducePangu, mfu_is_within_two_points_and_as_the_page_says) {
    const Reproduction all = figure("training");
    ASSERT_EQ(all.numbers.size(), 4u);
    EXPECT_NEAR(all.numbers[0].ours, 0.189, 0.02);
    EXPECT_NEAR(all.numbers[1].ours, 0.300, 0.02);
    std::ifstream file(MOEHUB_SOURCE_DIR "/docs/reproduction/pangu.md");
    const std::string page(std::istreambuf_iterator<char>(file), {});
    std::istringstream lines(markdown_of(answer_of(all), ""));
    int rows = 0;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| training")) continue;
        ++rows;
        EXPECT_NE(page.find(line + "\n"), std::string::npos) << line;
    }
    EXPECT_EQ(rows, 4);
}
#endif

}  // namespace
}  // namespace moehub::reproduce_pangu_test
