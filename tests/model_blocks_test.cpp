// Does an attention block take as long as on a measured card? validation/h200/blocks.csv holds
// blocks without rope, timed as CUDA graphs (validation/measure_blocks.py); nothing was fitted to
// it.
#include "base/csv.hpp"
#include "sim/gpu/transformer.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace moehub::model_blocks_test {
namespace {

double predicted_us(const Gpu& gpu, const std::string& model, std::int64_t tokens) {
    double seconds = 0;
    for (const Operation& step : attention_block(load_model(model), {tokens, tokens}, 0)) {
        const bool measured = !step.name.starts_with("rope") && step.name != "split";
        if (!measured) continue;
        for (const Kernel& kernel : step.forward) seconds += kernel_seconds(gpu, kernel);
    }
    return seconds * 1e6;
}

TEST(ModelBlocks, take_as_long_as_measured) {
    const Gpu gpu = load_gpu("h200-sxm");
    const auto table =
        CsvTable::read(std::string(MOEHUB_SOURCE_DIR) + "/validation/h200/blocks.csv");
    std::vector<double> errors;
    double signed_sum = 0;
    for (std::size_t i = 0; i < table.size(); ++i) {
        const CsvRow row = table[i];
        const std::int64_t tokens = row.integer("tokens", 1, 1 << 20);
        const double us = predicted_us(gpu, row.text("model"), tokens);
        const double error = us / row.positive("us") - 1;
        errors.push_back(std::abs(error));
        signed_sum += error;
        // As docs/end-to-end.md says of short ones and of the others.
        EXPECT_LT(std::abs(error), tokens <= 256 ? 0.16 : 0.08)
            << row.text("model") << ", " << tokens << " tokens: " << error;
    }
    ASSERT_EQ(errors.size(), 24u);
    std::sort(errors.begin(), errors.end());
    EXPECT_LT(errors[errors.size() / 2], 0.055);
    EXPECT_NEAR(signed_sum / 24, -0.05, 0.02) << "too fast, as the page says";
}

}  // namespace
}  // namespace moehub::model_blocks_test
