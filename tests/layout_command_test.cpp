// Does a layout that a server loads decide where experts of a simulated layer stand?
#include "cli_fixture.hpp"
#include "hidden_topics.hpp"

#include <moehub/expert_layout.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace layout_command_test {
namespace {

using cli_test::Cli;
using moehub::ExpertLayout;
using moehub::LayoutFormat;
using nlohmann::json;

class LayoutCli : public Cli {
  protected:
    LayoutCli()
        : model_(saved("small.toml",
                       "extends = \"mixtral-8x7b\"\nlayers = 4\ndense_layers = 1\ndense_ffn = "
                       "1024\nhidden = 1024\nexpert_ffn = 1024\n")) {}

    /// The experts of layers 1 to 3 on 4 GPUs, in order.
    ExpertLayout layout() const { return moehub::contiguous_layout({3, 8, {1, 2, 3}, 4}, 4); }
    std::string written(const ExpertLayout& layout, LayoutFormat format, const char* name) const {
        return saved(name, moehub::layout_text(layout, format));
    }
    std::string layer(const std::string& options, const std::string& command = "compare") const {
        return command + " --model " + model_ + " --gpus 4 --tokens 512 --routing zipf:1 " +
               options;
    }
    json json_of(const std::string& arguments) const {
        const auto outcome = moehub(arguments + " --json");
        EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
        return outcome.code == 0 ? json::parse(outcome.out) : json();
    }
    double time_of(const std::string& options) const {
        return json_of(layer("--systems ideal " + options))["results"][0]["time_us"];
    }

    std::string model_;  ///< 4 layers, the first dense; 8 experts
};

TEST_F(LayoutCli, every_format_is_the_same_layer) {
    ExpertLayout mixed = layout();
    mixed.on[1] = {{7, 0}, {1, 6}, {2, 5}, {3, 4}};
    const double in_order = time_of("");
    EXPECT_EQ(time_of("--layout " + written(layout(), LayoutFormat::csv, "order.csv")), in_order);
    const double expected =
        time_of("--layer 1 --layout " + written(mixed, LayoutFormat::json, "a"));
    EXPECT_NE(expected, time_of("--layer 1"));
    for (const auto format : {LayoutFormat::sglang, LayoutFormat::vllm, LayoutFormat::vllm_ascend,
                              LayoutFormat::trtllm, LayoutFormat::csv})
        EXPECT_EQ(time_of("--layer 1 --layout " + written(mixed, format, "b")), expected)
            << to_string(format);
    const auto text = moehub(layer("--systems ideal --layer 1 --layout " + file("a")));
    EXPECT_NE(text.out.find("layout " + file("a") + ", MoE layer 1 (layer 2 of the model)"),
              std::string::npos)
        << text.out;
}

TEST_F(LayoutCli, copies_of_the_file_are_there) {
    ExpertLayout copies = layout();
    for (auto& on : copies.on)
        for (std::size_t gpu = 0; gpu < 4; ++gpu) on[gpu].push_back(gpu == 0 ? 7 : 0);
    const std::string name = written(copies, LayoutFormat::sglang, "copies.json");
    const json all = json_of(layer("--systems ideal --layout " + name));
    EXPECT_EQ(all["replicas"], 4) << "three of expert 0, one of expert 7";
    EXPECT_EQ(all["layout"]["layer_of_model"], 1);
    EXPECT_TRUE(json_of(layer("--systems ideal"))["layout"].is_null());
    for (const auto* policy : {"round-robin", "least-loaded"})
        EXPECT_EQ(moehub(layer("--systems ideal --replica-policy " + std::string(policy) +
                               " --layout " + name))
                      .code,
                  0);
    expect_refused(layer("--replicas 1 --layout " + name),
                   "--replicas: found with --layout, whose file says which experts have copies, "
                   "allowed: one of the two");
    expect_refused(layer("--replica-policy round-robin"),
                   "--replica-policy: found without --replicas or --layout, allowed: with one of "
                   "them");
}

TEST_F(LayoutCli, a_models_layer_is_the_one_nearest_to_the_mean) {
    // All rows go to experts 0 and 1, which stand together in the first of three layers.
    std::vector<std::uint8_t> ids;
    for (int token = 0; token < 64; ++token)
        for (int layer = 0; layer < 3; ++layer) ids.insert(ids.end(), {0, 1});
    const auto trace = saved("trace.npy", moehub::npy("|u1", "(64, 3, 2)", moehub::bytes_of(ids)));
    ExpertLayout mixed = layout();  // experts 0 and 1 together
    mixed.on[1] = mixed.on[2] = {{0, 2}, {1, 3}, {4, 5}, {6, 7}};
    const auto name = written(mixed, LayoutFormat::trtllm, "a.yaml");
    const std::string model = "model --model " + model_ + " --gpus 4 --systems ideal --routing " +
                              trace + " --layout " + name;
    const auto text = moehub(model);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_NE(text.out.find("MoE layer 1, nearest to the mean of all (layer 2 of the model)"),
              std::string::npos)
        << text.out;
    EXPECT_NE(moehub(model + " --layer 0").out.find("MoE layer 0 (layer 1 of the model)"),
              std::string::npos);
}

TEST_F(LayoutCli, run_and_gain_take_one) {
    const auto name = written(layout(), LayoutFormat::json, "a.json");
    EXPECT_EQ(moehub(layer("--system ideal --layout " + name, "run")).code, 0);
    EXPECT_EQ(moehub("gain --models " + model_ +
                     " --gpus 4 --tokens 512 --system moe-hub --layout " + name)
                  .code,
              0);
}

TEST_F(LayoutCli, a_layout_of_another_model_is_refused) {
    const auto name = written(layout(), LayoutFormat::json, "a.json");
    const std::string wanted =
        " (wanted: 3 MoE layers of 8 experts, as small has, on 4 expert-parallel ranks)";
    const auto refused = [&](const ExpertLayout& other, LayoutFormat format,
                             const std::string& what) {
        const auto bad = written(other, format, "bad");
        const auto outcome = moehub(layer("--layout " + bad));
        EXPECT_EQ(outcome.code, 2);
        EXPECT_EQ(outcome.err, "moehub: --layout: " + bad + ": " + what + wanted + "\n");
    };
    refused(moehub::contiguous_layout({3, 16, {1, 2, 3}, 4}, 4), LayoutFormat::json,
            "experts: found 16, allowed: 8, as the model or the profile has");
    refused(moehub::contiguous_layout({5, 8}, 4), LayoutFormat::sglang,
            "physical_to_logical_map: found a list of 5, allowed: a list for each of the model's 4 "
            "layers, dense ones included");
    refused(moehub::contiguous_layout({3, 8, {1, 2, 3}, 4}, 2), LayoutFormat::json,
            "gpus: found 2 GPUs, allowed: 4");
    ExpertLayout odd = moehub::contiguous_layout({3, 8, {1, 2, 3}, 4}, 2);
    for (auto& on : odd.on)
        for (auto& experts : on) experts.push_back(experts.front());
    refused(odd, LayoutFormat::sglang,
            "layer 1: found 10 slots, allowed: a multiple of the 4 GPUs");
    expect_refused(layer("--layer 3 --layout " + name),
                   "--layer: found \"3\", allowed: a whole number from 0 to 2");
    expect_refused(layer("--layout " + file("none.json")),
                   "--layout: " + file("none.json") + ": no such file");
    expect_refused("compare --layer-type tp --layout " + name,
                   "--layout: found with --layer-type tp, allowed: with a MoE layer");
}

TEST_F(LayoutCli, a_recording_of_any_kind_is_a_trace) {
    const auto trace = saved("trace.npy", moehub::npy_of(moehub::topic_profile({}, 1)));
    const std::string model = "compare --model " + model_ + " --gpus 4 --systems ideal --routing ";
    const json whole = json_of(model + trace);
    EXPECT_EQ(whole["tokens"], 400);
    EXPECT_EQ(json_of(model + trace + ":0-1")["results"], whole["results"])
        << "read as a profile, or as a trace";
    EXPECT_EQ(json_of(model + trace + ":0.5-1")["tokens"], 200);
    const auto counts = saved("counts.csv", "1,2,3,4,5,6,7,8\n8,7,6,5,4,3,2,1\n");
    EXPECT_EQ(json_of(model + counts)["tokens"], 8192) << "drawn";
}

}  // namespace
}  // namespace layout_command_test
