// Do all commands' JSON documents have one form (docs/json.md)?
#include "cli_fixture.hpp"
#include "hidden_topics.hpp"

#include <set>
#include <vector>

#include <nlohmann/json.hpp>

namespace moehub::json_style_test {
namespace {

using cli_test::Cli;
using nlohmann::ordered_json;

/// Objects whose keys are names of something, not the schema's: docs/json.md lists them.
const std::set<std::string> kMaps = {"statistics", "baselines", "otherwise",
                                     "by_axis",    "kernels",   "columns",
                                     "shape",      "rows",      "sub_layers_us"};

bool is_snake_case(const std::string& key) {
    if (key.empty() || key.front() < 'a' || key.front() > 'z') return false;
    return key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == key.npos;
}

/// Units that a key may not end in, and what it ends in instead.
const std::vector<std::string> kOtherUnits = {"_ms", "_ns", "_s",   "_percent",
                                              "_gb", "_mb", "_gbps"};

void check_keys(const ordered_json& value, const std::string& path, bool map) {
    if (value.is_array())
        for (const ordered_json& one : value) check_keys(one, path, map);
    if (!value.is_object()) return;
    for (const auto& [key, inside] : value.items()) {
        const std::string where = path + "." + key;
        if (!map) {
            EXPECT_TRUE(is_snake_case(key)) << where;
            for (const std::string& unit : kOtherUnits) EXPECT_FALSE(key.ends_with(unit)) << where;
        }
        check_keys(inside, where, kMaps.contains(key));
    }
}

class JsonCli : public Cli {
  protected:
    ordered_json document(const std::string& command, const std::string& arguments) const {
        const auto outcome = moehub(command + " --json " + arguments);
        EXPECT_EQ(outcome.code, 0) << command << " " << arguments << ": " << outcome.err;
        const ordered_json json = ordered_json::parse(outcome.out, nullptr, false);
        EXPECT_TRUE(json.is_object()) << command << " " << arguments;
        if (!json.is_object()) return json;
        EXPECT_EQ(json.items().begin().key(), "schema") << command;
        EXPECT_EQ(json["schema"], (ordered_json{{"command", command}, {"version", 2}}));
        check_keys(json, command, false);
        return json;
    }
};

const std::string kSmall = "--gpus 4 --tokens 256 ";

TEST_F(JsonCli, layers_and_models_keep_the_style) {
    document("compare", kSmall + "--systems ideal,moe-hub,dysharp");
    document("compare", kSmall + "--layer-type tp --sublayer all");
    document("run", kSmall);
    document("run", kSmall + "--layer-type tp");
    EXPECT_TRUE(document("gain", kSmall + "--models mixtral-8x7b")["cases"].is_array());
    document("model", kSmall + "--training --systems ideal,moe-hub");
    document("model", kSmall + "--model llama-7b");
    document("model", kSmall + "--attention-tp 2 --systems moe-hub");
    document("model", "--decode --model qwen3-30b-a3b --gpus 1 --context 500 --batch-per-gpu 8");
    document("model", "--decode --model qwen3-30b-a3b --gpus 1 --context 500 --batch-per-gpu 8,16");
}

TEST_F(JsonCli, what_there_is_keeps_the_style) {
    document("area", "");
    document("lines", "");
    document("lines", "moe-hub");
    document("list", "");
    document("show", "dgx-h100");
    document("show", "mixtral-8x7b");
    document("collective", "--bytes 64K");
    document("predict", "gemm m=4096 n=7168 k=2048");
    document("validate", MOEHUB_SOURCE_DIR "/validation/h200/gemm_beside_copy.csv");
    document("reproduce", "");
}

TEST_F(JsonCli, recorded_routing_keeps_the_style) {
    const auto file =
        saved("routing.npy",
              npy_of(topic_profile({.layers = 4, .experts = 16, .topics = 4, .tokens = 300}, 1)));
    document("profile", file);
    document("place", "--gpus 4 --time-limit 0.2 --pareto --profile " + file);
}

TEST_F(JsonCli, systems_that_cannot_run_say_why) {
    const ordered_json all = document("compare", "--gpus 1 --tokens 64");
    ASSERT_FALSE(all["left_out"].empty());
    std::set<std::string> named;
    for (const auto& one : all["left_out"]) {
        EXPECT_FALSE(one["reason"].get<std::string>().empty()) << one;
        EXPECT_EQ(one["reason"].get<std::string>().find('\n'), std::string::npos) << one;
        named.insert(one["system"].get<std::string>());
    }
    for (const auto& one : all["results"])
        EXPECT_FALSE(named.contains(one["system"].get<std::string>())) << one["system"];
    EXPECT_TRUE(named.contains("mh-base"));
}

TEST_F(JsonCli, any_system_is_the_baseline) {
    const std::string systems = kSmall + "--systems ideal,megatron-te,moe-hub ";
    const ordered_json layer = document("compare", systems + "--baseline moe-hub");
    EXPECT_EQ(layer["baseline"], "moe-hub");
    EXPECT_EQ(layer["results"][2]["speedup"], 1.0);
    EXPECT_NEAR(
        layer["results"][1]["speedup"].get<double>(),
        layer["results"][2]["time_us"].get<double>() / layer["results"][1]["time_us"].get<double>(),
        1e-9);
    const ordered_json model = document("model", systems + "--baseline ideal");
    EXPECT_EQ(model["baseline"], "ideal");
    EXPECT_EQ(model["moe_layer"][0]["speedup"], 1.0);
    const ordered_json parts = document(
        "compare", kSmall +
                       "--layer-type tp --sublayer all --systems ideal,tp-nvls,cais --baseline "
                       "cais");
    EXPECT_EQ(parts["baseline"], "cais");
    EXPECT_EQ(parts["sub_layers"][2]["speedup"], 1.0);
    const ordered_json dense =
        document("model", kSmall + "--model llama-7b --baseline cais --systems tp-nvls,cais");
    EXPECT_EQ(dense["baseline"], "cais");
    expect_refused("compare " + systems + "--baseline moe-hubs",
                   "baseline: found \"moe-hubs\", allowed: one of the systems compared: ideal, "
                   "megatron-te, moe-hub; did you mean \"moe-hub\"?");
    expect_refused_about("model --model llama-7b " + kSmall + "--baseline nobody", "tp-nvls, cais");
    expect_refused_about("model --decode --context 100 --batch-per-gpu 1 --baseline moe-hub",
                         "--baseline");
}

TEST_F(JsonCli, tokens_of_each_gpu_keep_the_style) {
    EXPECT_EQ(document("compare", "--gpus 4 --tokens-per-gpu 64 --systems ideal")["tokens"], 256);
    EXPECT_EQ(document("run", "--layer-type tp --gpus 4 --tokens-per-gpu 64")["tokens"], 256);
    expect_refused_about("compare --tokens 64 --tokens-per-gpu 8", "--tokens");
    expect_refused_about("compare --gpus 4 --tokens-per-gpu 0", "--tokens-per-gpu: found \"0\"");
    expect_refused_about("compare --gpus 4 --tokens-per-gpu 9999999", "to 4194304");
}

}  // namespace
}  // namespace moehub::json_style_test
