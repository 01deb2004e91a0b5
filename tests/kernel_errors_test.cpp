// Are the published kernels met as well as before (validation/kernels/errors.csv)?
#include "golden.hpp"

#include <moehub/validate.hpp>

#include <gtest/gtest.h>

namespace moehub::kernel_errors_test {
namespace {

constexpr double kPoint = 0.01;

TEST(KernelErrors, are_no_worse_than_the_golden_ones) {
    const std::string folder = std::string(MOEHUB_SOURCE_DIR) + "/validation/kernels/";
    ValidateOptions options;
    options.above = 10 * kUs;
    std::vector<ValidationSummary> now;
    for (const char* file : {"gemm.csv", "attention_prefill.csv", "attention_decode.csv",
                             "mla_prefill.csv", "mla_decode.csv", "moe.csv"})
        for (const ValidationSummary& one : validate(folder + file, options).summary)
            now.push_back(one);
    golden::expect_errors(now, folder + "errors.csv", kPoint, kPoint);
}

}  // namespace
}  // namespace moehub::kernel_errors_test
