// Runs `moehub model`: what it prints, and the line for every kind of bad input. golden.hpp
// says how its golden texts are written anew.
#include "cli_fixture.hpp"

#include <cstdlib>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace model_cli_test {
namespace {

using cli_test::Cli;
using cli_test::Outcome;
using cli_test::text_of;
using nlohmann::json;

const std::string kSmall = "--gpus 4 --tokens 256";

class ModelCli : public Cli {};

class ModelGolden : public ModelCli {};

TEST_F(ModelGolden, without_arguments) {
    expect_golden("model", "model_default.txt");
}

TEST_F(ModelGolden, training_with_latent_attention) {
    expect_golden("model --model deepseek-v2-lite --training --systems megatron-te,moe-hub",
                  "model_training.txt");
}

TEST_F(ModelGolden, one_system_in_graphs_with_windows) {
    expect_golden(
        "model --model gpt-oss-120b --graphs --systems moe-hub --sequence 300 --gpus 4 "
        "--tokens 2048",
        "model_graphs.txt");
}

TEST_F(ModelCli, json_has_all_that_is_asked) {
    const json all = json_of("model --training --model deepseek-v2-lite " + kSmall);
    EXPECT_EQ(all["machine"], "dgx-h800");
    EXPECT_EQ(all["model"], "deepseek-v2-lite");
    EXPECT_EQ(all["gpus"], 4);
    EXPECT_EQ(all["tokens"], 256);
    EXPECT_EQ(all["sequence"], 64);
    EXPECT_EQ(all["layers"], 27);
    EXPECT_EQ(all["training"], true);
    EXPECT_EQ(all["eager"], true);
    EXPECT_GT(all["model_flops"], 0);
    EXPECT_EQ(all["baseline"], "megatron-te");
    ASSERT_EQ(all["results"].size(), 3u);
    const double megatron = all["results"][1]["time_us"];
    for (std::size_t i = 0; i < 3; ++i) {
        const json& one = all["results"][i];
        const double time = one["time_us"];
        double sum = 0;
        for (const json& part : all["parts"]) {
            if (part["system"] != one["system"]) continue;
            const double both =
                part["forward_us"].get<double>() + part["backward_us"].get<double>();
            EXPECT_NEAR(part["total_us"], part["count"].get<int>() * both, 1e-3);
            sum += part["total_us"].get<double>();
        }
        EXPECT_NEAR(sum, time, 1e-3);
        EXPECT_NEAR(one["speedup"], megatron / time, 1e-9);
        EXPECT_NEAR(one["tokens_per_second"], 256e6 / time, 1e-3);
        EXPECT_NEAR(one["mfu"].get<double>() * time * 1e-6 * 4 * 989.4e12, all["model_flops"],
                    1e-3 * all["model_flops"].get<double>());
        EXPECT_EQ(all["moe_layer"][i]["system"], one["system"]);
        EXPECT_EQ(all["moe_layer_backward"][i]["rows"], 256 * 6);
        EXPECT_EQ(all["moe_layer"][i]["compute_us"].get<double>() +
                      all["moe_layer"][i]["communication_us"].get<double>() +
                      all["moe_layer"][i]["host_us"].get<double>(),
                  all["moe_layer"][i]["time_us"].get<double>());
    }
}

TEST_F(ModelCli, the_layer_is_that_of_a_comparison) {
    const json model = json_of("model --systems moe-hub,megatron-te,ideal " + kSmall);
    json layer = json_of("compare --systems moe-hub,megatron-te,ideal " + kSmall);
    EXPECT_EQ(model["moe_layer"], layer["results"]);
    EXPECT_EQ(model["moe_layer_statistics"], layer["statistics"]);
    EXPECT_FALSE(model.contains("moe_layer_backward"));
}

TEST_F(ModelCli, threads_change_nothing) {
    const auto one = moehub("model --threads 1 --json " + kSmall);
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_EQ(one.out, moehub("model --threads 4 --json " + kSmall).out);
}

TEST_F(ModelCli, what_does_not_fit_is_refused) {
    expect_refused_about("model --systems ideal,moehub", "did you mean \"moe-hub\"?");
    expect_refused_about("model --systems ''", "--systems: found \"\", allowed: a name or a file");
    expect_refused_about("model --systems ideal,,moe-hub", "unknown system \"\"");
    expect_refused("model --systems ideal,ideal", "system \"ideal\" is named twice, allowed: once");
    for (const std::string bad : {"0", "-5", "long", "99999999"})
        expect_refused(
            "model --sequence " + bad,
            "--sequence: found \"" + bad + "\", allowed: a whole number from 1 to 16777216");
    expect_refused("model --threads 0",
                   "--threads: found \"0\", allowed: a whole number from 1 to 4096");
    expect_refused("model --tokens 4",
                   "--tokens: found 4, allowed: at least one for each of the 8 GPUs");
    expect_refused("model --trainign",
                   "model: unknown option \"--trainign\"; did you mean \"--training\"?");
    expect_refused_about("model --set model.nonsense=1", "nonsense");
}

TEST_F(ModelCli, overlapped_passes_are_one_part) {
    const std::string arguments = "model --training --systems deepep,dualpipe " + kSmall;
    const Outcome text = moehub(arguments);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_NE(text.out.find("beside it"), std::string::npos) << text.out;
    EXPECT_NE(text.out.find("dualpipe: a layer forward beside one backward: "), std::string::npos);
    const json all = json_of(arguments);
    const json& dualpipe = all["results"][1];
    double sum = 0;
    for (const json& part : all["parts"])
        if (part["system"] == "dualpipe") sum += part["total_us"].get<double>();
    EXPECT_NEAR(dualpipe["time_us"].get<double>(), sum, 1e-3);
    const auto both = std::find_if(all["parts"].begin(), all["parts"].end(),
                                   [](const json& part) { return part["system"] == "dualpipe"; });
    ASSERT_NE(both, all["parts"].end());
    EXPECT_EQ((*both)["name"], "attention, MoE layers");
    EXPECT_EQ((*both)["beside_us"], dualpipe["overlapped"]["period_us"]);
    EXPECT_TRUE(all["results"][0]["overlapped"]["period_us"].is_null());
    for (const auto* alone :
         {"model --systems dualpipe", "compare --systems dualpipe", "run --system dualpipe"})
        expect_refused(alone,
                       "dualpipe cannot run this: it overlaps a forward with a backward pass: "
                       "whole models in training (moehub model --training)");
}

TEST_F(ModelCli, an_output_file_is_replaced_whole_or_not_at_all) {
    const auto path = saved("out.txt", "old");
    EXPECT_EQ(moehub("model --tokens 0 -o " + path).code, 2);
    EXPECT_EQ(text_of(path), "old");
    const auto outcome = moehub("model --systems ideal -o " + path + " " + kSmall);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(text_of(path).find("MoE layers"), std::string::npos);
    expect_refused("model -o /no/such/out",
                   "/no/such/out: cannot be written: No such file or directory");
}

}  // namespace
}  // namespace model_cli_test
