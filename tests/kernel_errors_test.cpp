// Are the published kernels met as well as before? A line of validation/kernels/errors.csv that
// grows by more than a point fails; MOEHUB_REGENERATE=1 writes the file anew.
#include <moehub/validate.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace moehub {
namespace {

const std::string kFolder = std::string(MOEHUB_SOURCE_DIR) + "/validation/kernels/";
const std::string kErrors = kFolder + "errors.csv";
constexpr double kPoint = 0.01;

std::vector<ValidationSummary> errors_of(const std::string& file) {
    ValidateOptions options;
    options.above = 10 * kUs;
    return validate(kFolder + file, options).summary;
}

struct Known {
    std::size_t rows = 0;
    double median = 0;
    double p90 = 0;
};

std::map<std::string, Known> known_errors() {
    std::map<std::string, Known> known;
    std::ifstream file(kErrors);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        std::string name;
        std::string rows;
        std::string median;
        std::string p90;
        std::getline(fields, name, ',');
        std::getline(fields, rows, ',');
        std::getline(fields, median, ',');
        std::getline(fields, p90, ',');
        known[name] = {std::stoul(rows), std::stod(median), std::stod(p90)};
    }
    return known;
}

TEST(KernelErrors, NoFileIsMetWorseThanBefore) {
    const bool regenerate = std::getenv("MOEHUB_REGENERATE") != nullptr;
    const auto known = known_errors();
    std::string text = "name,rows,median,p90\n";
    std::size_t seen = 0;
    for (const std::string file : {"gemm.csv", "attention_prefill.csv", "attention_decode.csv",
                                   "mla_prefill.csv", "mla_decode.csv", "moe.csv"})
        for (const ValidationSummary& one : errors_of(file)) {
            text += fmt::format("{},{},{:.4f},{:.4f}\n", one.name, one.rows, one.median, one.p90);
            if (regenerate) continue;
            ASSERT_TRUE(known.contains(one.name)) << one.name;
            EXPECT_EQ(one.rows, known.at(one.name).rows) << one.name;
            ++seen;
            EXPECT_LE(one.median, known.at(one.name).median + kPoint) << one.name;
            EXPECT_LE(one.p90, known.at(one.name).p90 + kPoint) << one.name;
        }
    if (regenerate)
        std::ofstream(kErrors) << text;
    else
        EXPECT_EQ(seen, known.size()) << "kernels that nothing was predicted of";
}

}  // namespace
}  // namespace moehub
