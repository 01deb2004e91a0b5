// Does the fit of trainers find constants again, the same ones every time, and give each preset
// its own?
#include "study/training_runs.hpp"
#include "training_fit.hpp"

#include <moehub/presets.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace moehub::fit::fit_training_test {
namespace {

TrainerConstant constant(const std::string& preset, const std::string& key, double start) {
    return {preset, key, key.ends_with("launch") ? " us" : "", start, start / 100, start * 100};
}

TEST(TrainingFit, a_constant_holds_for_those_that_extend_its_preset) {
    const std::vector<TrainerConstant> shared{constant("megatron-26.04", "passes", 3)};
    for (const char* name : {"megatron-26.04", "megatron-folding", "megatron-gb200-eager"})
        EXPECT_EQ(overrides_for(name, shared, {3.5}), std::vector<std::string>{"passes=3.5"});
    EXPECT_TRUE(overrides_for("hai-llm", shared, {3.5}).empty());
    // A preset's own constant comes first, and what a preset sets itself stays.
    const std::vector<TrainerConstant> both{constant("megatron-26.04", "hopper.launch", 8),
                                            constant("megatron-folding", "hopper.launch", 8),
                                            constant("megatron-26.04", "blackwell.graphs", 0.6)};
    EXPECT_EQ(overrides_for("megatron-folding", both, {7, 12, 0.5}),
              (std::vector<std::string>{"blackwell.graphs=0.5", "hopper.launch=12 us"}));
    EXPECT_EQ(overrides_for("megatron-gb200-eager", both, {7, 12, 0.5}),
              std::vector<std::string>{"hopper.launch=7 us"});
}

/// Rows that a trainer with other constants would have published.
class MadeUpRows : public ::testing::Test {
  protected:
    void SetUp() override {
        const TrainerSpec trainer =
            load_trainer("megatron-modelzoo", {"hopper.tensor=0.6", "passes=12"});
        RunAnswers answers;
        std::string text = std::string(kTrainingRunColumns) + "\n";
        for (const std::string layout : {"1,1", "2,1", "1,2", "4,1"}) {
            const std::string row = fmt::format(
                "mixtral-8x7b,h100-cluster,16,bf16,64,1,4096,{},1,1,8,1,zero1,all-to-all,balanced,"
                "none,none,",
                layout);
            PublishedRun run = parse_training_run(CsvTable::parse(
                std::string(kTrainingRunColumns) + "\n" + row + "1,,,,MoE ModelZoo,\n",
                "made-up.csv")[0]);
            const double tokens =
                answers.answer(run, trainer_of(run), trainer).step.tokens_per_second;
            text += row + fmt::format("{},,,,MoE ModelZoo,\n", tokens);
        }
        std::ofstream(path_) << text;
    }
    void TearDown() override { std::filesystem::remove(path_); }

    const std::string path_ =
        (std::filesystem::temp_directory_path() / fmt::format("moehub-made-up-{}.csv", getpid()))
            .string();
    const std::vector<TrainerConstant> constants_ = {
        constant("megatron-modelzoo", "hopper.tensor", 0.9),
        constant("megatron-modelzoo", "passes", 4)};
};

TEST_F(MadeUpRows, constants_are_found_again_and_the_same_twice) {
    const auto fitted = [&] {
        TrainingFit fit(path_, constants_, 3);
        const double before = fit.loss();
        for (int i = 0; i < 4; ++i) fit.descend();
        EXPECT_LT(fit.loss(), before / 4);
        int held = 0;
        for (const TrainingFitRow& row : fit.rows()) {
            held += row.held_out;
            EXPECT_NEAR(row.predicted, 1, 0.03)
                << row.run.line << (row.held_out ? " held out" : "");
        }
        EXPECT_EQ(held, 1);  // every third
        return fit.values();
    };
    const std::vector<double> values = fitted();
    EXPECT_NEAR(values[0], 0.6, 0.05);
    EXPECT_EQ(values, fitted());
}

}  // namespace
}  // namespace moehub::fit::fit_training_test
