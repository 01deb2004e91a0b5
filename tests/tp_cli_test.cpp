// Runs `moehub compare --layer-type tp` and `run --layer-type tp`, `list` and `lines`: what they
// print of tensor-parallel sub-layers, and the line for every kind of bad input.
#include "cli_fixture.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tp_cli_test {
namespace {

using cli_test::Cli;
using cli_test::Outcome;
using cli_test::text_of;
using nlohmann::json;

const std::string kTp = " --layer-type tp ";
const std::string kSmall =
    " --layer-type tp --gpus 4 --tokens 256 --set model.hidden=512 --set model.dense_ffn=1024 ";
const std::string kSystems = " --systems ideal,tp-nvls,cais ";

class TpCli : public Cli {
  protected:
    void expect_text(const Outcome& outcome, const std::string& part) const {
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
    }
    /// Expects a sentence in the text, however it is broken into lines.
    void expect_sentence(Outcome outcome, const std::string& part) const {
        std::replace(outcome.out.begin(), outcome.out.end(), '\n', ' ');
        expect_text(outcome, part);
    }
};

TEST_F(TpCli, a_table_says_what_was_simulated) {
    const Outcome outcome = moehub("compare" + kSmall + kSystems);
    expect_text(outcome,
                "llama-7b on dgx-h100: 4 GPUs, 256 tokens, sub-layer L1 (attention's output, norm, "
                "FFN's first), row grain\nwith model.hidden=512, model.dense_ffn=1024\n");
    expect_text(outcome, "vs tp-nvls");
    expect_text(outcome, "of ideal");
    for (const auto* title : {"time µs", "exposed µs", "up MB", "down MB", "SM busy", "█ compute"})
        expect_text(outcome, title);
    expect_sentence(outcome,
                    "Checked in every system: each GPU read each of 256 rows once, as the sum of "
                    "all GPUs' partial sums, each once.");
}

TEST_F(TpCli, json_has_all_that_is_asked) {
    const json all = json_of("compare --sublayer L2" + kSmall + kSystems);
    EXPECT_EQ(all["layer_type"], "tp");
    EXPECT_EQ(all["machine"], "dgx-h100");
    EXPECT_EQ(all["model"], "llama-7b");
    EXPECT_EQ(all["gpus"], 4);
    EXPECT_EQ(all["tokens"], 256);
    EXPECT_EQ(all["sub_layer"], json{"L2"});
    EXPECT_EQ(all["grain"], "row");
    EXPECT_EQ(all["baseline"], "tp-nvls");
    ASSERT_EQ(all["results"].size(), 3u);
    const double ideal = all["results"][0]["time_us"];
    const double baseline = all["results"][1]["time_us"];
    for (const json& one : all["results"]) {
        const double time = one["time_us"];
        EXPECT_NEAR(one["speedup"], baseline / time, 1e-9);
        EXPECT_NEAR(one["share_of_ideal"], ideal / time, 1e-9);
        EXPECT_EQ(one["rows"], 256);
        EXPECT_EQ(one["verified"], false);
        EXPECT_NEAR(one["compute_us"].get<double>() + one["communication_us"].get<double>() +
                        one["host_us"].get<double>(),
                    time, 1e-6);
    }
    EXPECT_EQ(all["results"][0]["communication_us"], 0);
    EXPECT_GT(all["results"][1]["communication_us"], 0) << "a collective is exposed";
}

TEST_F(TpCli, all_sub_layers_are_a_sum) {
    const std::string arguments = "compare --sublayer all" + kSmall + kSystems;
    const json all = json_of(arguments);
    ASSERT_EQ(all["sub_layers"].size(), 12u) << "four under each of three systems";
    for (const json& whole : all["results"]) {
        double sum = 0;
        for (const json& part : all["sub_layers"])
            if (part["system"] == whole["system"]) sum += part["time_us"].get<double>();
        EXPECT_NEAR(whole["time_us"], sum, 1e-6);
    }
    const json alone = json_of("compare --sublayer L3" + kSmall + kSystems);
    for (std::size_t system = 0; system < 3; ++system) {
        json part = all["sub_layers"][2 * 3 + system];
        EXPECT_EQ(part["sub_layer"], "L3");
        part.erase("sub_layer");
        EXPECT_EQ(part, alone["results"][system]);
    }
    const Outcome text = moehub(arguments);
    for (const auto* title : {"sub-layers L1, L2, L3, L4", "L1 µs", "L4 µs", "sum µs"})
        expect_text(text, title);
}

TEST_F(TpCli, halves_of_attention_are_simulated_of_models_with_experts) {
    const std::string arguments =
        " --layer-type tp --model mixtral-8x7b --gpus 4 --tokens 128 --set model.hidden=512 ";
    expect_text(moehub("compare --sublayer attention-in" + arguments + kSystems),
                "each GPU read each of 128 rows once.\n");
    expect_sentence(
        moehub("compare --sublayer attention-out" + arguments + kSystems),
        "each of 128 rows came to its GPU as the sum of all GPUs' partial sums, each once");
    expect_refused_about("compare" + arguments, "found no dense FFN");
}

TEST_F(TpCli, what_is_left_out_is_said) {
    const Outcome outcome = moehub("compare --machine single-switch" + kSmall);
    expect_text(outcome, "Left out: tp-nvls, sp-nvls, ");
    expect_text(outcome,
                "Left out: cais-base, cais-partial, cais-uncoordinated: an ablation; it runs when "
                "it is named\n");
    const json all = json_of("compare --machine single-switch" + kSmall);
    for (const json& one : all["results"]) EXPECT_NE(one["system"], "cais-base");
}

TEST_F(TpCli, a_run_shows_units_and_the_dataflow) {
    const Outcome cais = moehub("run" + kSmall);
    expect_text(cais,
                "Dataflow optimizer:\n  GEMM (partial sums) + reduce-scatter + norm + "
                "all-gather + GEMM: fused by thread blocks, ");
    expect_text(cais, "\nlink ");
    expect_text(cais, "\nChecked: each GPU read each of 256 rows once");
    expect_text(moehub("run --system cais-base" + kSmall), "Dataflow optimizer:\n");
    const Outcome plain = moehub("run --system tp-nvls" + kSmall);
    EXPECT_EQ(plain.out.find("Dataflow"), std::string::npos);
    expect_run_is_second_of("run --system cais" + kSmall,
                            "compare --systems tp-nvls,cais" + kSmall);
}

TEST_F(TpCli, outputs_are_those_of_the_reference) {
    const std::string arguments = "compare --verify --gpus 4 --tokens 64" + kTp +
                                  "--set model.hidden=256 --set model.dense_ffn=512" + kSystems;
    expect_sentence(moehub(arguments), " Verified: outputs equal the reference layer's");
    const json all = json_of(arguments);
    for (const json& one : all["results"]) EXPECT_EQ(one["verified"], true);
}

TEST_F(TpCli, tokens_are_the_models_batch) {
    const json all = json_of("run --system ideal --gpus 2" + kTp +
                             "--set model.sequence=48 --set model.batch=3 --set model.hidden=256");
    EXPECT_EQ(all["tokens"], 144);
}

TEST_F(TpCli, runs_one_gpu) {
    const json all =
        json_of("compare --layer-type tp --gpus 1 --tokens 64 --set model.hidden=256" + kSystems);
    for (const json& one : all["results"]) EXPECT_GT(one["time_us"], 0) << one["system"];
}

TEST_F(TpCli, grain_threads_and_settings_work) {
    const auto one = moehub("compare --threads 1 --json" + kSmall + kSystems);
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_EQ(one.out, moehub("compare --threads 4 --json" + kSmall + kSystems).out);
    const std::string tiny = "run --gpus 2 --tokens 32 --grain packet --set model.hidden=256" + kTp;
    EXPECT_EQ(json_of(tiny)["grain"], "packet");
    const json plain = json_of("run" + kSmall);
    const json changed = json_of("run" + kSmall + "--set system.cais.fuse_blocks=false");
    EXPECT_NE(plain["results"][0]["time_us"], changed["results"][0]["time_us"]);
    const auto path = saved("out.json", "old");
    EXPECT_EQ(moehub("run --tokens 0" + kTp + "-o " + path).code, 2);
    EXPECT_EQ(text_of(path), "old");
    EXPECT_EQ(moehub("run --json" + kSmall + "-o " + path).out, "");
    EXPECT_EQ(json::parse(text_of(path)), plain);
}

TEST_F(TpCli, options_of_moe_layers_are_refused) {
    for (const std::string option :
         {"--routing uniform", "--seed 2", "--layer 1", "--pass forward", "--tp 2", "--replicas 1",
          "--region-rows 10", "--page-rows 64", "--host graph", "--fp8", "--fused-activation"})
        expect_refused("compare" + kTp + option, option.substr(0, option.find(' ')) +
                                                     ": found with --layer-type tp, allowed: with "
                                                     "a MoE layer");
    expect_refused("run --sublayer L1",
                   "--sublayer: found with a MoE layer, allowed: with --layer-type tp");
}

TEST_F(TpCli, words_that_do_not_fit_are_refused) {
    expect_refused("compare --layer-type dense", "--layer-type: found \"dense\", allowed: moe, tp");
    expect_refused_about("compare --sublayer L5" + kTp, "attention-in, all");
    expect_refused_about("compare --systems ideal,moe-hub" + kTp,
                         "system \"moe-hub\" runs MoE layers, allowed for tensor-parallel "
                         "sub-layers: ideal, tp-nvls, sp-nvls");
    expect_refused_about("compare --systems cais",
                         "system \"cais\" runs tensor-parallel sub-layers, allowed for MoE layers: "
                         "ideal, torch");
    expect_refused_about("compare --systems tp-nvsl" + kTp, "did you mean \"tp-nvls\"?");
    expect_refused_about("compare --systems cais,cais" + kTp, "named twice");
    expect_refused_about("compare --systems ''" + kTp, "--systems: found \"\"");
    expect_refused_about("run --system cais --set system.cais.chunks=2" + kTp,
                         "chunks is not a parameter of the program cais");
    expect_refused("compare --tokens 0" + kTp,
                   "--tokens: found \"0\", allowed: a whole number from 1 to 16777216");
    expect_refused_about("compare --machine h100-cluster --gpus 16" + kTp + kSystems,
                         "tensor parallelism works inside one node, found 2 nodes");
    expect_refused_about("compare --machine h100-cluster --gpus 16" + kTp,
                         "tensor parallelism works inside one node, found 2 nodes");
}

TEST_F(TpCli, systems_are_listed_and_counted) {
    const Outcome list = moehub("list systems");
    const auto second = list.out.find("\nsystems of tensor-parallel sub-layers");
    ASSERT_NE(second, std::string::npos) << list.out;
    EXPECT_GT(list.out.find("  cais "), second);
    EXPECT_LT(list.out.find("  moe-hub "), second);
    EXPECT_EQ(list.out.find("  moe-hub ", second), std::string::npos);
    const json all = json_of("list systems");
    EXPECT_GT(all["systems"].size(), 20u);
    EXPECT_EQ(all["tp_systems"].size(), 14u);

    expect_text(moehub("lines"), "\nTensor-parallel sub-layers:\n");
    expect_text(moehub("lines"), "(program of cais-base)");
    EXPECT_EQ(json_of("lines")["tp_systems"].size(), 14u);
    EXPECT_EQ(moehub("lines tp-nvls").out,
              text_of(MOEHUB_SOURCE_DIR "/src/systems/tp/tp_nvls.cpp"));
}

}  // namespace
}  // namespace tp_cli_test
