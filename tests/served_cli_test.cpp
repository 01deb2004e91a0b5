// `moehub model --decode` and `--prefill` as a user types them.
#include "cli_fixture.hpp"

#include <nlohmann/json.hpp>

namespace served_cli_test {
namespace {

using cli_test::Cli;
using ServedCli = Cli;

const std::string kDecode = "model --decode --machine dgx-h200 --model deepseek-v3 --context 2000 ";

TEST_F(ServedCli, says_where_the_time_of_a_step_goes) {
    const auto outcome = moehub(kDecode + "--batch-per-gpu 16");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* words : {"attention core", "routed experts (MoE)", "tokens/s a GPU",
                              "ms a token", "moe-hub", "memory a GPU: weights", "room for"})
        EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
}

TEST_F(ServedCli, json_holds_the_same) {
    const auto outcome = moehub(kDecode + "--batch-per-gpu 16 --systems engine,deepep-ll --json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    ASSERT_EQ(json["results"].size(), 2u);
    EXPECT_EQ(json["phase"], "decode");
    const auto step = json["results"][1];
    double sum = 0;
    for (const auto& one : json["operators"])
        if (one["system"] == "deepep-ll")
            sum += one["count"].get<double>() * one["time_us"].get<double>();
    EXPECT_NEAR(sum, step["step_us"].get<double>(), 1e-3);
    EXPECT_NEAR(step["tokens_per_second_per_gpu"].get<double>(),
                16e6 / step["tpot_us"].get<double>(), 1e-3);
}

TEST_F(ServedCli, has_tables_and_finds_the_batch_that_fits) {
    const auto table = moehub(kDecode + "--batch-per-gpu 4,8,4000 --systems deepep-ll --json");
    ASSERT_EQ(table.code, 0) << table.err;
    const auto json = nlohmann::json::parse(table.out);
    ASSERT_EQ(json["points"].size(), 3u);
    EXPECT_TRUE(json["points"][1]["best"]);
    EXPECT_NE(json["points"][2]["reason"].get<std::string>().find("allowed: at most"),
              std::string::npos);
    const auto found = moehub(kDecode + "--find batch --tpot 25ms --systems deepep-ll");
    EXPECT_EQ(found.code, 0) << found.err;
    EXPECT_NE(found.out.find("best"), std::string::npos) << found.out;
}

TEST_F(ServedCli, takes_dense_models_and_prompts) {
    EXPECT_EQ(moehub("model --decode --machine dgx-h200 --model llama-3.1-70b --attention-tp 8 "
                     "--context 1000 --batch-per-gpu 4")
                  .code,
              0);
    const auto prompts = moehub(
        "model --prefill --machine dgx-h200 --prompt 512 --batch-per-gpu 2 "
        "--systems engine,deepep --overlap none");
    EXPECT_EQ(prompts.code, 0) << prompts.err;
    EXPECT_NE(prompts.out.find("reading prompts"), std::string::npos) << prompts.out;
}

TEST_F(ServedCli, mistakes_get_one_line) {
    expect_refused("model --decode --batch-per-gpu 4", "--context: found nothing, allowed: tokens");
    expect_refused(kDecode,
                   "--batch-per-gpu: found nothing, allowed: requests of a GPU, or --find");
    expect_refused("model --decode --context 0 --batch-per-gpu 4",
                   "--context: found \"0\", allowed: a whole number from 1 to 16777216");
    expect_refused(
        kDecode + "--batch-per-gpu 4 --training",
        "--training: found with --decode, allowed: with a model with experts or a dense model");
    expect_refused("model --context 100",
                   "--context: found with a model with experts, allowed: with --decode");
    expect_refused(kDecode + "--batch-per-gpu 4 --grain foo",
                   "--grain: found \"foo\", allowed: packet, row");
    expect_refused_about(kDecode + "--find batch --tpot 1ms --systems deepep-ll",
                         "--find: no batch keeps --tpot 1 ms: already 1 a GPU takes");
    expect_refused(kDecode + "--batch-per-gpu 4 --overlap three-batch",
                   "--overlap: found \"three-batch\", allowed: none, single-batch, two-batch");
    expect_refused(
        kDecode + "--batch-per-gpu 4 --weights bf16 --gpus 4",
        "deepseek-v3 does not fit: weights take 361.0 GB of each GPU, allowed 141.0 GB of "
        "h200-sxm: more GPUs, or weights of fewer bits");
    expect_refused_about(kDecode + "--batch-per-gpu 100000",
                         "--batch-per-gpu: found 100000, allowed: at most");
}

}  // namespace
}  // namespace served_cli_test
