// Runs `moehub place`: what it prints and writes, and the line for every kind of bad input.
#include "cli_fixture.hpp"
#include "hidden_topics.hpp"

#include <moehub/expert_layout.hpp>
#include <moehub/place.hpp>

#include <cstdlib>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace place_command_test {
namespace {

using cli_test::Cli;
using cli_test::Outcome;
using cli_test::text_of;
using moehub::npy;
using moehub::npy_of;
using moehub::topic_profile;
using nlohmann::json;
namespace fs = std::filesystem;

class PlaceCli : public Cli {
  protected:
    PlaceCli() : trace_(saved("trace.npy", npy_of(topic_profile({}, 1)))) {}

    /// On 4 GPUs, a short search.
    std::string quick(const std::string& arguments, const std::string& part = "") const {
        return "place --profile " + trace_ + part + " --gpus 4 --time-limit 0.02 " + arguments;
    }
    json json_of(const std::string& arguments) const {
        const Outcome outcome = moehub(arguments + " --json");
        EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
        EXPECT_EQ(outcome.err, "");
        return json::parse(outcome.out);
    }
    /// Profiles by which the layout was placed, or held out: the rows of the layout found.
    static std::vector<json> found_in(const json& all, bool held_out = false) {
        std::vector<json> rows;
        for (const json& row : all["layouts"])
            if (row["layout"] == all["method"] && row["held_out"] == held_out) rows.push_back(row);
        return rows;
    }
    moehub::ExpertLayout layout_of(const std::string& name,
                                   const moehub::LayoutShape& shape) const {
        return moehub::read_layout(file(name), 4, shape);
    }

    std::string trace_;  ///< 8 experts, top-2, 3 layers, 400 tokens
};

TEST_F(PlaceCli, json_has_all_that_is_asked) {
    const json all = json_of(quick("--evaluate " + trace_ + ":0.5-1", ":0-0.5"));
    EXPECT_EQ(all["method"], "joint");
    EXPECT_EQ(all["objective"], "gpus");
    EXPECT_EQ(all["machine"], "dgx-h100");
    EXPECT_EQ(all["gpus"], 4);
    EXPECT_EQ(all["nodes"], 1);
    EXPECT_EQ(all["slots_per_gpu"], 2);
    EXPECT_EQ(all["held_out"], true);
    for (const auto* key : {"load_max_over_mean", "gpus_per_token", "off_gpu_transitions",
                            "heaviest_pair", "activated_max_over_mean"}) {
        EXPECT_TRUE(all["evaluation"][key].is_number()) << key;
        EXPECT_TRUE(found_in(all)[0][key].is_number()) << key;
        EXPECT_TRUE(all["baselines"]["contiguous"][key].is_number()) << key;
        EXPECT_TRUE(all["baselines"]["eplb"][key].is_number()) << key;
    }
    EXPECT_EQ(found_in(all)[0]["tokens"], 200);
    EXPECT_EQ(found_in(all, true)[0]["profile"], trace_ + ":0.5-1");
    EXPECT_LT(all["evaluation"]["gpus_per_token"],
              all["baselines"]["contiguous"]["gpus_per_token"]);
    EXPECT_GE(all["gap"], 0);
    EXPECT_TRUE(all["notes"].is_array());
    EXPECT_TRUE(all["cut_short"].is_boolean());
    EXPECT_GT(all["search_seconds"], 0);
    EXPECT_EQ(all["pair_traffic"].size(), 4u);
    EXPECT_NE(all["traffic_model"].get<std::string>().find("home GPU"), std::string::npos);
}

TEST_F(PlaceCli, the_report_is_readable) {
    const auto outcome = moehub(quick("--evaluate " + trace_ + ":0.5-1", ":0-0.5"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "") << "no bar without a terminal";
    EXPECT_TRUE(
        outcome.out.starts_with("3 layers of 8 experts, top-2, on 4 GPUs of dgx-h100, 2 "
                                "slots a GPU\nBy joint, minimising gpus, load at most 1.06"))
        << outcome.out;
    for (const auto* part : {"\ncontiguous ", "\neplb ", "\njoint ", ", held out\n",
                             "On held-out tokens, against contiguous", "-o FILE"})
        EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
}

TEST_F(PlaceCli, the_same_seed_gives_the_same_bytes) {
    const std::string thorough =
        "place --profile " + trace_ + " --gpus 4 --time-limit 60 --seed 3 ";
    const json one = json_of(thorough + "--threads 1 --dense-layers 0 -o " + file("one.json"));
    const json two = json_of(thorough + "--threads 2 --dense-layers 0 -o " + file("two.json"));
    EXPECT_EQ(one["cut_short"], false);
    EXPECT_EQ(one["evaluation"], two["evaluation"]);
    EXPECT_NE(text_of(file("one.json")), "");
    EXPECT_EQ(text_of(file("one.json")), text_of(file("two.json")));
}

TEST_F(PlaceCli, the_layout_is_written_in_the_format_of_its_ending) {
    const auto first_line = [this](const std::string& name, const std::string& options) {
        EXPECT_EQ(moehub(quick(options + " -o " + file(name))).code, 0);
        const std::string text = text_of(file(name));
        return text.substr(0, text.find('\n'));
    };
    EXPECT_TRUE(
        first_line("a.json", "--dense-layers 0").starts_with("{\"physical_to_logical_map\""));
    EXPECT_TRUE(first_line("a.csv", "").starts_with("layer,"));
    EXPECT_TRUE(first_line("a.yaml", "").starts_with("num_slots: 8"));
    EXPECT_TRUE(first_line("a.yml", "").starts_with("num_slots: 8"));
    EXPECT_TRUE(
        first_line("a.txt", "--dense-layers 0").starts_with("{\"physical_to_logical_map\""));
    EXPECT_TRUE(first_line("b.json", "--format vllm").starts_with("["));
    for (const auto* name : {"a.json", "a.csv", "a.yaml", "b.json"}) {
        const auto layout = layout_of(name, {3, 8});
        EXPECT_EQ(slots_per_gpu(layout), 2) << name;
        check(layout, name);
    }
    const auto outcome = moehub(quick("-o " + file("c.csv")));
    EXPECT_NE(outcome.out.find("format csv"), std::string::npos) << outcome.out;
}

TEST_F(PlaceCli, dense_layers_are_counted) {
    const auto rows = [this](const std::string& options) {
        EXPECT_EQ(moehub(quick(options + " -o " + file("rows.json"))).code, 0) << options;
        return json::parse(text_of(file("rows.json")))["physical_to_logical_map"].size();
    };
    EXPECT_EQ(rows("--dense-layers 0"), 3u);
    EXPECT_EQ(rows("--dense-layers 2"), 5u);
    const auto model =
        saved("small.toml",
              "extends = \"mixtral-8x7b\"\nlayers = 6\ndense_layers = 1\ndense_ffn = 1024\n");
    EXPECT_EQ(rows("--model " + model), 6u);
    expect_refused_about(quick("--dense-layers 1 --model " + model), "excludes");
    fs::remove(file("rows.json"));
    expect_refused(quick("-o " + file("rows.json")),
                   "--format sglang: found no word in " + trace_ +
                       " on how many dense layers the model begins with, and SGLang wants a row "
                       "for every layer, allowed: with --model M or --dense-layers N (0: none)");
    EXPECT_FALSE(fs::exists(file("rows.json")));
}

TEST_F(PlaceCli, experts_must_fit_the_memory) {
    const auto model = saved(
        "small.toml", "extends = \"mixtral-8x7b\"\nlayers = 3\nhidden = 1000\nexpert_ffn = 1000\n");
    const std::string with_model = quick("--model " + model + " ");
    EXPECT_EQ(moehub(with_model + "--memory '36 MB'").code, 0) << "2 slots of 6 MB in 3 layers";
    EXPECT_EQ(moehub(with_model + "--memory '18 MB' --weight-bits 8").code, 0);
    expect_refused(with_model + "--memory '35 MB'",
                   "--memory: found 2 slots of 6.00 MB a GPU in 3 layers, 36.0 MB, allowed: 35.0 "
                   "MB; fewer --replicas or more --gpus, or --weight-bits 8 where weights are FP8");
    expect_refused_about(quick("--memory 1G"), "--memory requires --model");
    expect_refused_about(quick("--model deepseek-v3 --machine dgx-h100"), "allowed: 80.0 GB");
}

TEST_F(PlaceCli, few_experts_are_moved_from_the_current_layout) {
    EXPECT_EQ(moehub(quick("--method contiguous -o " + file("now.csv"))).code, 0);
    const json few =
        json_of(quick("--current " + file("now.csv") + " --max-moves 4 -o " + file("next.csv")));
    EXPECT_LE(few["evaluation"]["moved_experts"], 4);
    EXPECT_GT(few["evaluation"]["moved_experts"], 0);
    EXPECT_EQ(few["baselines"]["current"]["moved_experts"], 0);
    EXPECT_EQ(few["evaluation"]["moved_experts"],
              moved_experts(layout_of("now.csv", {3, 8}), layout_of("next.csv", {3, 8})));
    expect_refused_about(quick("--max-moves 4"), "--max-moves requires --current");
    expect_refused_about(quick("--current " + file("none.csv")), "none.csv: no such file");
}

TEST_F(PlaceCli, replicas_and_nodes_can_be_asked_for) {
    const json all = json_of(quick("--replicas 4 --nodes 2"));
    EXPECT_EQ(all["slots_per_gpu"], 3);
    EXPECT_EQ(all["nodes"], 2);
    EXPECT_EQ(all["objective"], "gpus+4*nodes");
    EXPECT_GE(all["evaluation"]["nodes_per_token"], 1);
    const json wide =
        json_of("place --method eplb --profile " + trace_ + " --gpus 16 --replicas 8");
    EXPECT_EQ(wide["nodes"], 2) << "a node of dgx-h100 has 8";
    expect_refused("place --profile " + trace_ + " --gpus 12",
                   "--gpus: found 12, allowed: up to the 8 of one node of dgx-h100, or a multiple "
                   "of it; or say --nodes");
}

TEST_F(PlaceCli, several_profiles_are_taken_in_every_form) {
    const auto other = saved("other.npy", npy_of(topic_profile({}, 2)));
    EXPECT_EQ(found_in(json_of(quick("", " " + other))).size(), 2u) << "after one flag";
    const json repeated = json_of(quick("--worst-profile --profile " + other + "@3"));
    ASSERT_EQ(found_in(repeated).size(), 2u);
    EXPECT_EQ(found_in(repeated)[1]["weight"], 3);
    EXPECT_EQ(repeated["worst_profile"], true);
    const json judged = json_of(quick("--evaluate " + other + " " + trace_ + ":0-0.1"));
    EXPECT_EQ(found_in(judged, true).size(), 2u);
}

TEST_F(PlaceCli, prints_those_of_which_none_is_better) {
    const json all = json_of(quick("--pareto --dense-layers 0 -o " + file("own.json")));
    ASSERT_GE(all["pareto"].size(), 1u);
    for (const json& one : all["pareto"]) {
        EXPECT_TRUE(one["options"].get<std::string>().starts_with("--objective ")) << one;
        EXPECT_TRUE(one["evaluation"]["gpus_per_token"].is_number());
    }
    EXPECT_EQ(all["objective"], "gpus");
    EXPECT_TRUE(fs::exists(file("own.json")));
    const auto text = moehub(quick("--pareto"));
    EXPECT_NE(text.out.find("Layouts of which none is better in everything"), std::string::npos);
}

TEST_F(PlaceCli, the_effect_is_simulated) {
    const std::string machine = " --model mixtral-8x7b --machine dgx-h200";
    const json all = json_of(quick("--simulate ideal,megatron-te --simulate deepep" + machine));
    const json& layouts = all["effects"]["layouts"];
    ASSERT_EQ(layouts.size(), 12u);
    EXPECT_EQ(layouts[0]["system"], "ideal");
    for (const auto& [at, name] :
         {std::pair{8, "contiguous"}, {9, "eplb"}, {10, "joint, load"}, {11, "joint"}})
        EXPECT_EQ(layouts[static_cast<std::size_t>(at)]["layout"], name);
    for (const json& one : layouts) {
        EXPECT_GT(one["layer_us"]["mean"], 0) << one;
        const json& eplb = layouts[one["system"] == "ideal"    ? 1
                                   : one["system"] == "deepep" ? 9
                                                               : 5];
        EXPECT_NEAR(one["speedup_over_eplb"],
                    eplb["model_us"].get<double>() / one["model_us"].get<double>(), 1e-9);
    }
    EXPECT_GT(layouts[11]["all_to_all_us"]["mean"], 0);
    expect_refused_about(quick("--simulate deepep"), "--simulate requires --model");
    expect_refused_about(quick("--simulate depep" + machine), "did you mean \"deepep\"?");
    expect_refused_about(quick("--simulate deepep --nodes 2" + machine), "--simulate: found 2");
}

TEST_F(PlaceCli, the_faster_layout_is_taken) {
    // One layer of the model is simulated for each recorded one; whichever the system, what is
    // written is no slower than EPLB's layout, and the report says where it is not the search's.
    const std::string machine = " --model mixtral-8x7b --machine dgx-h200 --replicas 4 -o ";
    std::size_t others = 0;
    for (const auto* system : {"megatron-te", "moe-hub", "ideal"}) {
        const json all = json_of(
            quick("--load-cap 2 --system " + std::string(system) + machine + file("taken.csv")));
        const json& effects = all["effects"];
        ASSERT_FALSE(effects.is_null()) << all["notes"];
        EXPECT_EQ(effects["decided_by"], system);
        std::map<std::string, double> time;
        for (const json& one : effects["layouts"]) time[one["layout"]] = one["moe_layers_us"];
        const std::string taken = effects["taken"];
        for (const auto* name : {"eplb", "joint", "joint, load"})
            EXPECT_LE(time.at(taken), time.at(name)) << system << " " << taken;
        const auto written = layout_of("taken.csv", {3, 8, {}, 32});
        const auto judged = moehub::evaluate(topic_profile({}, 1), written);
        EXPECT_NEAR(judged.load_max_over_mean, all["evaluation"]["load_max_over_mean"], 1e-9);
        if (taken == "joint") continue;
        ++others;
        EXPECT_NE(all["notes"][0].get<std::string>().find("which is taken instead"),
                  std::string::npos);
        EXPECT_EQ(all["method"], taken.substr(0, taken.find(',')));
    }
    EXPECT_GT(others, 0u) << "a cap of 2 leaves the search uneven: somebody minds";
    const json own =
        json_of(quick("--method contiguous --system ideal" + machine + file("taken.csv")));
    EXPECT_EQ(own["effects"]["taken"], "contiguous") << "who asks for it gets it";
    expect_refused_about(quick("--system deepep"), "--system requires --model");
}

TEST_F(PlaceCli, tokens_are_drawn_by_counts) {
    std::vector<std::int32_t> counts;
    for (int layer = 0; layer < 2; ++layer)
        for (int expert = 0; expert < 8; ++expert) counts.push_back(expert == 3 ? 4000 : 1000);
    const auto profile = saved("counts.npy", npy("<i4", "(2, 8)", moehub::bytes_of(counts)));
    const json all = json_of("place " + profile +
                             " --gpus 4 --model mixtral-8x7b --machine dgx-h200 --system ideal");
    ASSERT_FALSE(all["effects"].is_null()) << all["notes"];
    EXPECT_NE(all["notes"].dump().find("drawn by the counts"), std::string::npos);
}

TEST_F(PlaceCli, dumps_of_ranks_are_one_profile) {
    const auto other = saved("other.npy", npy_of(topic_profile({}, 2)));
    const json both = json_of("place " + trace_ + " " + other + " --gpus 4 --time-limit 0.02");
    ASSERT_EQ(found_in(both).size(), 1u);
    EXPECT_EQ(found_in(both)[0]["tokens"], 800);
    const json apart = json_of(quick("--profile " + other));
    EXPECT_EQ(found_in(apart).size(), 2u) << "--profile: a profile each";
    const auto few = saved("few.npy", npy_of(topic_profile({.layers = 2}, 2)));
    expect_refused(
        "place " + trace_ + " " + few + " --gpus 4",
        few + ": found 2 layers, allowed: 3, as in " + trace_ + " (dumps of one recording)");
    expect_refused_about("place " + trace_ + ":0-0.5 " + other + " --gpus 4",
                         "found another part or weight");
}

TEST_F(PlaceCli, the_servers_command_line_is_printed) {
    const auto out = [this](const std::string& options, const std::string& name) {
        return moehub(quick(options + " --dense-layers 0 -o " + file(name))).out;
    };
    const auto has = [](const std::string& text, const std::string& part) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
    };
    const std::string sglang = out("--replicas 4", "a.json");
    has(sglang, "python -m sglang.launch_server --model-path MODEL --tp-size 4 --ep-size 4");
    has(sglang, "--ep-num-redundant-experts 4");
    has(sglang, "--init-expert-location " + file("a.json"));
    has(out("", "a.txt"), "only where its name ends in .json");
    has(out("", "a.yaml"), "load_balancer: \"" + file("a.yaml") + "\"");
    has(out("--format vllm", "b.json"), "No release of vLLM loads this file");
    has(out("--format vllm-ascend", "b.json"), "\"expert_map_path\": \"" + file("b.json"));
    has(out("", "a.csv"), "moehub compare --machine dgx-h100 --gpus 4");
}

TEST_F(PlaceCli, ctrl_c_ends_with_the_best_so_far) {
    // So large that the search alone takes many times what it gets. In the foreground timeout sends
    // one signal; otherwise one to the group, too, and the second ends the program.
    const auto big =
        saved("big.npy",
              npy_of(topic_profile({.layers = 64, .experts = 64, .topics = 8, .tokens = 4000}, 1)));
    const auto outcome =
        shell("timeout --foreground -s INT 2 '" MOEHUB_PROGRAM "' place --profile " + big +
              " --gpus 8 --time-limit 300 --json --dense-layers 0 -o " + file("cut.json") +
              "; test $? -eq 124");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err,
              "moehub: this is the best found until the interruption\n"
              "moehub: interrupted; wrote " +
                  file("cut.json") + "\n");
    ASSERT_NE(outcome.out, "");
    EXPECT_EQ(json::parse(outcome.out)["cut_short"], true);
    EXPECT_TRUE(fs::exists(file("cut.json")));
    const auto text = shell("timeout --foreground -s INT 1 '" MOEHUB_PROGRAM "' place --profile " +
                            big + " --gpus 8 --time-limit 300; test $? -eq 124");
    EXPECT_NE(text.out.find("The search was interrupted: "), std::string::npos) << text.out;
    EXPECT_EQ(text.out.find("by the clock"), std::string::npos) << text.out;
}

TEST_F(PlaceCli, keeps_the_layout_that_cannot_be_simulated) {
    // The third layer recorded is that of multi-token prediction, which is placed and not timed.
    const auto model =
        saved("few.toml", "extends = \"mixtral-8x7b\"\nlayers = 2\nmtp_layers = 1\n");
    const json all = json_of(quick("--system ideal --model " + model + " -o " + file("kept.json")));
    EXPECT_EQ(json::parse(text_of(file("kept.json")))["physical_to_logical_map"].size(), 3u);
    EXPECT_FALSE(all["effects"].is_null()) << all["notes"];
    // torch runs experts of one GPU only.
    const auto outcome =
        moehub(quick("--system torch --model " + model + " -o " + file("kept.json")));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("- not simulated under torch: "), std::string::npos) << outcome.out;
}

TEST_F(PlaceCli, blocks_are_only_those_that_there_are) {
    const auto counts =
        saved("counts.npy",
              npy("<i4", "(1, 4)", moehub::bytes_of(std::vector<std::int32_t>{3, 5, 1, 2})));
    const auto one = moehub("place --gpus 2 --time-limit 0.02 --load-blocks 8 --profile " + counts);
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_NE(one.out.find("\nThe profile has only 1 block, 8 asked for.\n"), std::string::npos)
        << one.out;
    EXPECT_EQ(one.out.find("in each of"), std::string::npos) << one.out;
    EXPECT_EQ(one.out.find("To hold"), std::string::npos) << one.out;
    const auto all = moehub(quick("--load-blocks 8"));
    EXPECT_NE(all.out.find("load at most 1.06 in each of 8 blocks"), std::string::npos) << all.out;
    EXPECT_EQ(all.out.find("has only"), std::string::npos) << all.out;
    expect_refused("place --load-blocks 65 --profile " + counts,
                   "--load-blocks: found \"65\", allowed: a whole number from 1 to 64");
}

TEST_F(PlaceCli, nothing_is_written_when_the_input_is_bad) {
    const std::string out = file("out.json");
    expect_refused_about(quick("--objective nothing -o " + out), "--objective: found \"nothing\"");
    expect_refused_about(quick("--method moetuner --unequal -o " + out), "--unequal: found");
    expect_refused_about(quick("--max-moves 1 -o " + out), "--max-moves");
    for (const auto* format : {"sglang", "vllm", "vllm-ascend", "trtllm"})
        expect_refused_about(quick("--method moetuner --unequal -o " + out + " --format " + format),
                             std::string("--unequal: found --format ") + format + ", whose loader");
    EXPECT_FALSE(fs::exists(out));
    expect_refused(quick("-o " + file("no/where.json")),
                   file("no/where.json") + ": cannot be written: No such file or directory");
    expect_refused_about(quick("-o " + trace_), "which is read");
    expect_refused("place --profile " + file("") + " -o " + file("rank0.safetensors"),
                   "-o: found " + file("rank0.safetensors") +
                       ", in a folder that is read, allowed: a file elsewhere");
    expect_refused(quick("-o -"), "-o: found \"-\", allowed: a file");
}

TEST_F(PlaceCli, every_mistake_has_a_line) {
    expect_refused("place", "--profile: found nothing, allowed: FILE");
    expect_refused("place --profile", "place: --profile: found nothing, allowed: a value");
    expect_refused_about("place --profile none.npy", "none.npy");
    expect_refused_about("place --profile " + trace_ + ":0.5-0.2", "part: found \"0.5-0.2\"");
    expect_refused_about("place --profile " + trace_ + " --evaluate none.npy", "none.npy");
    expect_refusals(quick(""), R"(
--method jiont
    --method: found "jiont"…
--metod eplb
    did you mean "--method"?…
--replicas -1
    --replicas: found "-1"…
--replicas 1000
    --replicas: found 1000…
--nodes 3
    --nodes: found 3…
--groups 3
    --groups: found 3…
--load-cap 0.5
    --load-cap: found 0.5…
--load-cap -1
    --load-cap: found "-1"…
--seed -1
    --seed: found "-1"…
--threads 0
    --threads: found "0"…
--batch 0
    --batch: found "0"…
--load-blocks 0
    --load-blocks: found "0"…
--format sglnag
    did you mean "sglang"?…
--machine dgx-h1000
    did you mean "dgx-h100"?…
--unequal
    --unequal: found --method joint…
)");
    expect_refused("place --profile " + trace_ + " --gpus -4",
                   "--gpus: found \"-4\", allowed: a whole number from 1 to 4096");
    expect_refused_about("place --profile " + trace_ + " --gpus 3", "on 3 GPUs, allowed");
    expect_refused_about("place --profile " + trace_ + " --time-limit 0", "--time-limit: found 0");
    expect_refused_about("place --profile " + trace_ + " --time-limit 1e9", "at most 1e6");
    const auto counts =
        saved("counts.npy",
              npy("<i4", "(1, 4)", moehub::bytes_of(std::vector<std::int32_t>{3, 5, 1, 2})));
    expect_refused_about("place --profile " + counts + " --gpus 2 --pareto", "--pareto: found");
    expect_refused_about("place --profile " + counts + " --gpus 2 --objective gpus",
                         "--objective: found gpus");
    expect_refused_about("place --gpus 2 --profile " + trace_ + " --evaluate " + counts, "counts");
}

TEST_F(PlaceCli, help_names_what_there_is) {
    const auto help = moehub("place --help");
    EXPECT_EQ(help.code, 0);
    for (const auto* part :
         {"--profile", "--evaluate", "--load-cap", "--pareto", "--simulate", "vllm-ascend",
          "moetuner", "gpus+4*transitions", "--system", "Example:\n  moehub place"})
        EXPECT_NE(help.out.find(part), std::string::npos) << part;
}

#ifndef MOEHUB_SANITIZED  // finds too little in its time
TEST_F(PlaceCli, gains_on_recorded_routing_hold_on_other_tokens) {
    const char* const named = std::getenv("MOEHUB_ROUTING_DIR");
    const fs::path folder =
        named != nullptr ? fs::path(named) : fs::path(MOEHUB_SOURCE_DIR) / "../shared/data/routing";
    const fs::path law = folder / "dsv2lite-law.npy";
    if (!fs::exists(law)) GTEST_SKIP() << "no recorded routing at " << law;
    const json all = json_of("place --profile " + law.string() + ":0-0.5 --evaluate " +
                             law.string() + ":0.5-1 --gpus 8 --time-limit 4");
    EXPECT_LT(all["evaluation"]["gpus_per_token"],
              0.85 * all["baselines"]["contiguous"]["gpus_per_token"].get<double>());
    EXPECT_LT(all["evaluation"]["load_max_over_mean"],
              all["baselines"]["contiguous"]["load_max_over_mean"]);
}
#endif

}  // namespace
}  // namespace place_command_test
