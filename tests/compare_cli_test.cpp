// Runs `moehub compare`, `run` and `lines`: what they print, and the line for every kind of bad
// input. Texts that hold simulated times are in tests/golden; golden.hpp says how they are
// written anew.
#include "cli_fixture.hpp"

#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace compare_cli_test {
namespace {

using cli_test::Cli;
using cli_test::Outcome;
using cli_test::text_of;
using nlohmann::json;

const std::string kSmall = "--gpus 4 --tokens 256";

class CompareCli : public Cli {
  protected:
    /// A trace of top-2 of 8 experts: token t of layer l takes experts t+l and t+l+1.
    std::string trace(int tokens, int layers) const {
        std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (" +
                             std::to_string(tokens) + ", " + std::to_string(layers) + ", 2), }";
        header.resize(117, ' ');
        std::string text = "\x93NUMPY\x01";
        text += '\0';
        text += '\x76';
        text += '\0';
        text += header + "\n";
        for (int token = 0; token < tokens; ++token)
            for (int layer = 0; layer < layers; ++layer)
                for (int slot = 0; slot < 2; ++slot) {
                    text += static_cast<char>((token + layer + slot) % 8);
                    text += std::string(3, '\0');
                }
        return saved("trace.npy", text);
    }
};

class CompareGolden : public CompareCli {};

TEST_F(CompareGolden, all_systems) {
    expect_golden("compare " + kSmall, "compare.txt");
}

TEST_F(CompareGolden, without_arguments) {
    expect_golden("compare", "compare_default.txt");
}

TEST_F(CompareGolden, skewed_routing) {
    expect_golden(
        "compare --machine dgx-h800 --model mixtral-8x7b --gpus 8 --tokens 8192 "
        "--systems ideal,megatron-te,moe-hub --routing normal:0.032 --seed 1 --grain row",
        "compare_normal.txt");
}

TEST_F(CompareGolden, with_the_same_software) {
    expect_golden("compare --host graph --fused-activation", "compare_equal.txt");
}

#ifndef MOEHUB_SANITIZED  // four models under all systems
TEST_F(CompareGolden, where_the_lead_comes_from) {
    expect_golden("gain", "gain.txt");
}
#endif

TEST_F(CompareGolden, one_system_with_its_units) {
    expect_golden("run " + kSmall + " --replicas 2 --page-rows 64 --routing zipf:1", "run.txt");
}

TEST_F(CompareGolden, systems_without_the_usual_baseline) {
    expect_golden(
        "compare --systems mh-dep,moe-hub --gpus 4 --tp 2 --tokens 64 "
        "--model deepseek-v2-lite --set link.latency='300 ns' --set model.gated=false",
        "compare_changed.txt");
}

TEST_F(CompareCli, software_is_the_same_for_all_where_it_is_asked_for) {
    const json all = json_of("compare " + kSmall + " --host graph --fused-activation --fp8");
    for (const json& one : all["results"]) {
        EXPECT_EQ(one["software"]["host"], "graph") << one["system"];
        EXPECT_EQ(one["software"]["fused_activation"], true) << one["system"];
        EXPECT_EQ(one["software"]["expert_format"], "fp8") << one["system"];
        EXPECT_LE(one["share_of_ideal"], 1.0) << one["system"];
    }
    const Outcome wrong = moehub("compare --host lazy");
    EXPECT_EQ(wrong.code, 2);
    EXPECT_EQ(wrong.err, "moehub: --host: found \"lazy\", allowed: eager, graph\n");
    const Outcome no_host =
        moehub("compare " + kSmall + " --systems ideal --set system.ideal.host=eager");
    EXPECT_EQ(no_host.code, 2);
}

TEST_F(CompareCli, gain_has_every_step_in_json) {
    const json all = json_of("gain --models mixtral-8x7b " + kSmall)["cases"];
    ASSERT_EQ(all.size(), 1u);
    const json steps = json_of("gain --models mixtral-8x7b " + kSmall)["steps"];
    ASSERT_EQ(steps.size(), 5u);
    EXPECT_EQ(steps[0]["system"], "megatron-te");
    EXPECT_EQ(steps[0]["time_us"], all[0]["baseline_us"]);
    EXPECT_EQ(steps[4]["time_us"], all[0]["time_us"]);
    EXPECT_EQ(moehub("gain --over nobody").code, 2);
    EXPECT_EQ(moehub("gain --models nobody").code, 2);
}

TEST_F(CompareCli, json_has_all_that_is_asked) {
    const json all = json_of("compare " + kSmall + " --systems ideal,megatron-te,moe-hub");
    EXPECT_EQ(all["machine"], "dgx-h800");
    EXPECT_EQ(all["model"], "mixtral-8x7b");
    EXPECT_EQ(all["gpus"], 4);
    EXPECT_EQ(all["tokens"], 256);
    EXPECT_EQ(all["routing"], "uniform");
    EXPECT_EQ(all["seed"], 1);
    EXPECT_EQ(all["grain"], "row");
    EXPECT_EQ(all["baseline"], "megatron-te");
    ASSERT_EQ(all["results"].size(), 3u);
    const double ideal = all["results"][0]["time_us"];
    const double megatron = all["results"][1]["time_us"];
    for (const json& one : all["results"]) {
        const double time = one["time_us"];
        EXPECT_GT(time, 0);
        EXPECT_NEAR(one["speedup"], megatron / time, 1e-9);
        EXPECT_NEAR(one["share_of_ideal"], ideal / time, 1e-9);
        EXPECT_NEAR(one["compute_us"].get<double>() + one["communication_us"].get<double>() +
                        one["host_us"].get<double>(),
                    time, 1e-6);
        for (const auto* key : {"up_bytes", "down_bytes", "payload_bytes"})
            EXPECT_TRUE(one[key].is_number_integer()) << key;
        EXPECT_GT(one["first_gemm_us"], 0);
        EXPECT_LE(one["first_gemm_us"], time);
        EXPECT_GT(one["sm_busy"], 0);
        EXPECT_LE(one["sm_busy"], 1);
        EXPECT_EQ(one["rows"], 512);
        EXPECT_GE(one["packets"], 0);
        EXPECT_EQ(one["verified"], false);
        EXPECT_TRUE(one["largest_error"].is_null());
    }
    EXPECT_EQ(all["results"][2]["system"], "moe-hub");
    const json rows{{"system", "moe-hub"},
                    {"unit", "aau"},
                    {"name", "rows"},
                    {"value", 512.0},
                    {"meaning", "allocated"}};
    const json& counted = all["statistics"];
    EXPECT_NE(std::find(counted.begin(), counted.end(), rows), counted.end()) << counted;
}

TEST_F(CompareCli, the_share_of_ideal_is_unknown_without_it) {
    const json all = json_of("compare " + kSmall + " --systems mh-base,moe-hub");
    EXPECT_TRUE(all["results"][0]["share_of_ideal"].is_null());
    EXPECT_EQ(all["baseline"],
              all["results"][0]["time_us"] >= all["results"][1]["time_us"] ? "mh-base" : "moe-hub");
}

TEST_F(CompareCli, a_run_is_the_same_as_its_row_of_a_comparison) {
    expect_run_is_second_of("run --system moe-hub " + kSmall,
                            "compare --systems megatron-te,moe-hub " + kSmall);
}

TEST_F(CompareCli, threads_change_nothing) {
    const auto one = moehub("compare --threads 1 --json " + kSmall);
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_EQ(one.out, moehub("compare --threads 4 --json " + kSmall).out);
}

TEST_F(CompareCli, outputs_are_those_of_the_reference_layer) {
    const std::string arguments = "compare --verify --gpus 4 --tokens 64 --model olmoe-1b-7b";
    const auto outcome = moehub(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("\nVerified: outputs equal the reference layer's"),
              std::string::npos);
    const json all = json_of(arguments);
    for (const json& one : all["results"]) {
        EXPECT_EQ(one["verified"], true);
        EXPECT_LT(one["largest_error"], 1e-12);
    }
}

TEST_F(CompareCli, gpus_that_hold_no_expert_are_mentioned) {
    const Outcome outcome =
        moehub("compare --machine h100-cluster --gpus 16 --tokens 256 --systems ideal,moe-hub");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("\n8 of 16 expert-parallel ranks hold no expert: there are 8.\n"),
              std::string::npos)
        << outcome.out;
}

TEST_F(CompareCli, a_layer_of_a_trace_is_simulated) {
    const auto path = trace(40, 3);
    const json whole = json_of("run --gpus 4 --layer 2 --routing " + path);
    EXPECT_EQ(whole["tokens"], 40) << "all of the trace";
    EXPECT_EQ(whole["layer"], 2);
    EXPECT_TRUE(whole["seed"].is_null());
    EXPECT_EQ(whole["routing"], path);
    EXPECT_EQ(json_of("run --gpus 4 --tokens 100 --routing " + path)["results"][0]["rows"], 200);
    const auto text = moehub("run --gpus 4 --routing " + path);
    EXPECT_NE(text.out.find(path + ", layer 0"), std::string::npos) << text.out;

    expect_refused("run --layer 3 --routing " + path,
                   "--layer: found \"3\", allowed: a whole number from 0 to 2");
    expect_refused("run --seed 2 --routing " + path,
                   "--seed: a trace has none, allowed: with a generator");
    expect_refused_about("run --model deepseek-v3 --routing " + path, "allowed: the model's top-8");
    expect_refused("run --layer 1000",
                   "--layer: found \"1000\", allowed: a whole number from 0 to 999");
    expect_refused_about("run --routing none.npy", "none.npy");
}

TEST_F(CompareCli, files_are_taken_for_machine_and_model) {
    const auto machine = saved("mine.toml", "extends = \"dgx-h800\"\n");
    const auto model = saved("small.toml", "extends = \"mixtral-8x7b\"\nhidden = 1024\n");
    const json all = json_of("run " + kSmall + " --machine " + machine + " --model " + model);
    EXPECT_EQ(all["machine"], machine);
    EXPECT_EQ(all["model"], model);
    EXPECT_EQ(all["results"][0]["rows"], 512);
}

TEST_F(CompareCli, systems_that_do_not_fit_are_refused) {
    const std::string allowed =
        "allowed: ideal, torch, megatron-te, all-to-all, hierarchical, fastermoe, tutel, ccfuser, "
        "comet, deepep, deepep-single-qp, dualpipe, deepep-ll, deepep-ll-rdma, deepep-v2, "
        "hybrid-ep, one-sided, one-sided-relay, flashdmoe, mega-moe, nvls, dysharp, dysharp-basic, "
        "dysharp-comet, fusion-only, steps-only, moe-hub, moe-hub-relay, mh-base, mh-pkt, mh-dep, "
        "moe-hub+dysharp";
    expect_refused("compare --systems ideal,moehub",
                   "unknown system \"moehub\", " + allowed + "; did you mean \"moe-hub\"?");
    expect_refused("compare --systems ideal,,moe-hub", "unknown system \"\", " + allowed);
    expect_refused("compare --systems ''", "--systems: found \"\", allowed: a name or a file");
    expect_refused("compare --systems ideal,moe-hub,ideal",
                   "system \"ideal\" is named twice, allowed: once");
    expect_refused("run --system mh-bse",
                   "unknown system \"mh-bse\", " + allowed + "; did you mean \"mh-base\"?");
    expect_refused("lines nothing-like-it", "unknown system \"nothing-like-it\", " + allowed);
}

TEST_F(CompareCli, named_systems_that_cannot_run_the_layer_are_left_out) {
    const auto reason = [&](const std::string& arguments) {
        const json all = json_of("compare --tokens 256 " + arguments);
        EXPECT_EQ(all["results"].size(), 1u) << arguments;
        return all["left_out"][0]["reason"].get<std::string>();
    };
    EXPECT_EQ(reason("--systems moe-hub,nvls --machine ascend-910b-cluster"),
              "it works inside one node, found 2 nodes");
    EXPECT_TRUE(reason("--systems moe-hub,nvls --machine single-switch")
                    .starts_with("the switches of single-switch do not multicast"));
    EXPECT_TRUE(reason("--systems moe-hub,tutel --model qwen2-moe-2.7b")
                    .starts_with("it needs as many experts on every GPU"));
}

TEST_F(CompareCli, a_layer_that_no_named_system_runs_is_refused_before_anything_runs) {
    const auto bare = saved("bare.toml", "program = \"comet\"\n");
    expect_refusals("", R"(
compare --systems nvls,dysharp --machine single-switch
    nvls cannot run this: the switches of single-switch do not multicast…
run --system comet --set system.comet.communication_sms=132
    communication holds 132 SMs, and a GPU of dgx-h800 has 132…
run --system comet --machine ascend-910b-cluster --gpus 8
    communication holds 28 SMs…
run --system comet --tp 2
    comet cannot run this: experts are whole, found 2 GPUs for each…
run --system )" + bare + R"(
    communication_sms: found 0, allowed: 1 or more…
)");
}

TEST_F(CompareCli, parameters_of_systems_are_set_and_systems_read_from_files) {
    const auto mine = saved("mine.toml", "extends = \"comet\"\nchunks = 2\n");
    const json file = json_of("run " + kSmall + " --system " + mine);
    const json set = json_of("run " + kSmall + " --system comet --set system.comet.chunks=2");
    EXPECT_EQ(file["results"][0]["system"], "mine");
    json_of("run " + kSmall + " --system " + mine + " --set system.mine.chunks=3");
    expect_refused_about("compare --systems " + mine + ",comet," + mine, "named twice");
    EXPECT_EQ(file["results"][0]["time_us"], set["results"][0]["time_us"]);
    const json plain = json_of("run " + kSmall + " --system comet");
    EXPECT_NE(plain["results"][0]["time_us"], set["results"][0]["time_us"]);
    expect_refused_about("run --system comet --set system.tutel.chunks=2",
                         "with one of the systems simulated: comet");
    expect_refused_about("run --system comet --set system.comet.chnks=2",
                         "did you mean \"chunks\"");
    expect_refused_about("run --system comet --set system.comet.barrier=\"2 us\"",
                         "barrier is not a parameter of the program comet; it has: chunks");
    const auto bad = saved("bad.toml", "program = \"commet\"\n");
    expect_refused_about("run --system " + bad, "unknown program \"commet\"; did you mean");
}

TEST_F(CompareCli, numbers_that_do_not_fit_are_refused) {
    expect_refused("compare --tokens 4",
                   "--tokens: found 4, allowed: at least one for each of the 8 GPUs");
    for (const std::string bad : {"0", "-1", "many", "1.5", "99999999999", ""})
        expect_refused(
            "compare --tokens '" + bad + "'",
            "--tokens: found \"" + bad + "\", allowed: a whole number from 1 to 16777216");
    for (const std::string bad : {"x", "-1", "1e99"})
        expect_refused("compare --seed " + bad,
                       "--seed: found \"" + bad + "\", allowed: a whole number, 0 or more");
    expect_refused("compare --gpus 9", "--gpus: found \"9\", allowed: a whole number from 1 to 8");
    expect_refused("compare --tp 3", "--tp: found 3, allowed: divisors of the 8 GPUs");
    expect_refused("compare --tp 0", "--tp: found \"0\", allowed: a whole number, 1 or more");
    expect_refused_about("compare --replicas 57", "found 57 redundant copies");
    expect_refused("compare --threads 0",
                   "--threads: found \"0\", allowed: a whole number from 1 to 4096");
    expect_refused_about("compare --page-rows 64 --page-pool lots", "--page-pool: found \"lots\"");
}

TEST_F(CompareCli, words_that_do_not_fit_are_refused) {
    expect_refused("compare --grain flit", "--grain: found \"flit\", allowed: packet, row");
    expect_refused("compare --pass sideways",
                   "--pass: found \"sideways\", allowed: forward, backward");
    expect_refused("compare --replicas 1 --replica-policy best",
                   "--replica-policy: found \"best\", allowed: round-robin, least-loaded");
    expect_refused("compare --sytems ideal",
                   "compare: unknown option \"--sytems\"; did you mean \"--systems\"?");
    expect_refused("run --threads 2", "run: unknown option \"--threads\"; see moehub run --help");
    expect_refused("compare ideal",
                   "compare: unexpected argument \"ideal\"; see moehub compare --help");
    expect_refused("compare --page-pool 1G", "--page-pool requires --page-rows");
    expect_refused("compare --model llama-7b",
                   "--model: found \"llama-7b\", which has no experts, allowed: a model with "
                   "experts");
    expect_refused_about("compare --routing nrmal:1", "nrmal");
    expect_refused_about("compare --set nonsense=1", "nonsense");
    expect_refused_about("compare --set model.nonsense=1", "nonsense");
    expect_refused_about("compare --machine dgx-h80", "dgx-h800");
}

TEST_F(CompareCli, a_region_that_is_too_small_is_named) {
    expect_refused_about("compare --systems ideal,moe-hub --region-rows 10 " + kSmall, "10 rows");
}

TEST_F(CompareCli, an_output_file_is_replaced_whole_or_not_at_all) {
    const auto path = saved("out.json", "old");
    EXPECT_EQ(moehub("compare --tokens 0 --json -o " + path).code, 2);
    EXPECT_EQ(moehub("compare --region-rows 1 -o " + path).code, 2);
    EXPECT_EQ(text_of(path), "old");
    const auto outcome = moehub("compare --json -o " + path + " " + kSmall);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(json::parse(text_of(path))["results"].size(), 18u);
    expect_refused("run -o /no/such/out",
                   "/no/such/out: cannot be written: No such file or "
                   "directory");
}

TEST_F(CompareCli, lines_list_all_systems_beside_the_papers) {
    const json all = json_of("lines");
    ASSERT_GE(all["systems"].size(), 6u);
    EXPECT_EQ(all["systems"][0]["system"], "ideal");
    EXPECT_EQ(all["counted_by_paper"][1]["scheduling"]["device"], 5589);
    const auto text = moehub("lines").out;
    for (const json& one : all["systems"])
        EXPECT_NE(text.find(fmt::format("\n{} ", one["system"].get<std::string>())),
                  std::string::npos);
    for (const auto* part : {"Primus-Turbo", "2605.05888", "fewer than 10 store instructions"})
        EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST_F(CompareCli, lines_print_a_program_as_it_is) {
    const auto file = text_of(MOEHUB_SOURCE_DIR "/src/systems/moe/moe_hub.cpp");
    EXPECT_EQ(moehub("lines moe-hub").out, file);
    EXPECT_EQ(json_of("lines moe-hub")["program"], file);
}

}  // namespace
}  // namespace compare_cli_test
