// Are copies by thread blocks, and GEMMs beside them, read, refused and predicted?
#include "validated.hpp"

#include <gtest/gtest.h>

namespace moehub::validate_copies_test {
namespace {

const std::string kData = MOEHUB_SOURCE_DIR "/validation/h200/";
const std::string kCopies = "warps,blocks,rows,width,copy_us,fill_us,copy_GBps,fill_GBps\n";
const std::string kBeside =
    "rows,k,n,gemms,copy_blocks,gemm_alone_us,gemm_us,copy_covers_all,copy_GBps_whole\n";

TEST(ValidateCopies, gemms_beside_a_copy_are_met) {
    const Validation found = validate(kData + "gemm_beside_copy.csv");
    ASSERT_EQ(found.summary.size(), 2u);
    EXPECT_EQ(found.summary[1].rows, 40u);
    EXPECT_LT(found.summary[1].median, 0.05);
    EXPECT_LT(found.summary[1].p90, 0.11);
    EXPECT_LT(found.summary[1].max, 0.15);
}

TEST(ValidateCopies, copies_and_fills_are_met) {
    const Validation found = validate(kData + "copies_by_blocks.csv");
    ASSERT_EQ(found.summary.size(), 2u);
    EXPECT_LT(found.summary[0].median, 0.12) << "copy";
    EXPECT_LT(found.summary[1].median, 0.03) << "fill";
    ASSERT_EQ(found.skipped.size(), 2u) << "blocks of fewer warps";
}

TEST(ValidateCopies, a_gemm_needs_an_sm) {
    EXPECT_EQ(why_skipped(kBeside + "8192,4096,14336,20,132,1219.3,9999,1,0\n"),
              "no SM is left for the GEMM");
}

TEST(ValidateCopies, rows_that_mean_nothing_are_refused) {
    for (const std::string& text : {kBeside + "0,4096,14336,20,2,1219.3,1301.3,1,45.9\n",
                                    kBeside + "8192,4096,14336,20,-1,1219.3,1301.3,1,45.9\n",
                                    kBeside + "8192,4096,14336,20,2,1219.3,0,1,45.9\n",
                                    kCopies + "32,0,2048,4096,613.8,308.5,27.3,54.4\n",
                                    kCopies + "32,1,2048,4096,long,308.5,27.3,54.4\n"})
        EXPECT_THROW(validated(text), InputError) << text;
}

}  // namespace
}  // namespace moehub::validate_copies_test
