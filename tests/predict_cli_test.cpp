// `moehub predict`, cards from a datasheet, and `validate` of published kernels, as a user types
// them.
#include "cli_fixture.hpp"

#include <nlohmann/json.hpp>

namespace predict_cli_test {
namespace {

using cli_test::Cli;
using PredictCli = Cli;

const std::string kDatasheet = R"(title = "A card that is to come"
generation = "blackwell"
sms = 160
clock = "2 GHz"
bf16_flops = "4 PFLOP/s"
fp8_flops = "8 PFLOP/s"
nvfp4_flops = "20 PFLOP/s"
hbm_bandwidth = "13 TB/s"
hbm_capacity = "288 GB"
l2_capacity = "192 MiB"
)";

TEST_F(PredictCli, answers_one_question) {
    const auto outcome = moehub("predict gemm --gpu b200 --dtype fp8 m=4096 n=7168 k=2048");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("µs on b200 (trtllm), bound by"), std::string::npos) << outcome.out;
    const auto explained =
        moehub("predict gemm --gpu b200 --dtype fp8 m=4096 n=7168 k=2048 --explain");
    EXPECT_NE(explained.out.find("SMs"), std::string::npos) << explained.out;
    EXPECT_NE(explained.out.find("GFLOP"), std::string::npos) << explained.out;
}

TEST_F(PredictCli, json_holds_the_same) {
    const auto outcome =
        moehub("predict decode batch=16 context=4000 heads=32 kv_heads=8 head_dim=128 --json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json["kernel"], "decode");
    EXPECT_EQ(json["shape"]["window"], 0);
    EXPECT_GT(json["time_us"], 8);
    EXPECT_LT(json["share_of_hbm"], 1);
}

TEST_F(PredictCli, every_kernel_answers) {
    for (const std::string arguments :
         {"gemm m=1 n=1 k=1",
          "prefill batch=1 tokens=100 heads=8 kv_heads=8 head_dim=64 --cache fp8",
          "mla-prefill batch=1 tokens=100 heads=16",
          "mla-decode batch=1 context=1 heads=16 --kernels sglang",
          "moe tokens=64 hidden=4096 expert_ffn=1536 top_k=8 experts=128 ep=8 --distribution "
          "power-law-1.2"})
        EXPECT_EQ(moehub("predict " + arguments).code, 0) << arguments;
}

TEST_F(PredictCli, mistakes_get_one_line) {
    expect_refused(
        "predict gem m=1",
        "kernel: found \"gem\", allowed: gemm, prefill, decode, mla-prefill, mla-decode, "
        "moe; did you mean \"gemm\"?");
    expect_refused("predict gemm m=1 n=2", "gemm: missing k=…");
    expect_refused("predict gemm m=1 m=2 n=2 k=3", "gemm: m is given twice");
    expect_refused("predict gemm m=1 n=2 k=3 --gpu ascend-910b",
                   "ascend-910b: no kernel library \"trtllm\": the card names no generation");
    expect_refused("predict gemm m=0 n=2 k=3",
                   "m: found \"0\", allowed: a whole number from 1 to 100000000");
    expect_refused("predict gemm m=1 n=2 k=3 l=4", "gemm: found \"l=4\", allowed: m, n, k");
    expect_refused("predict gemm m=1 n=2 k=3 --dtype fp9",
                   "--dtype: found \"fp9\", allowed: bf16, fp8, fp8-block, nvfp4, w4a16; did you "
                   "mean \"fp8\"?");
    expect_refused("predict gemm m=1 n=2 k=3 --dtype fp8 --gpu a100-sxm",
                   "a100-sxm: no tensor cores of the format fp8");
    expect_refused("predict gemm m=1 n=2 k=3 --dtype nvfp4 --gpu h100-sxm",
                   "h100-sxm: no tensor cores of the format nvfp4");
    expect_refused(
        "predict gemm m=1 n=2 k=3 --kernels torc",
        "h200-sxm: no kernel library \"torc\", found flashinfer-cutlass, sglang, trtllm");
    expect_refused("predict gemm m=1 n=2 k=3 --cache fp8", "gemm has no --cache");
    expect_refused("predict decode batch=1 context=1 heads=1 kv_heads=1 head_dim=64 --dtype fp8",
                   "decode has no --dtype");
    expect_refused(
        "model --kernels trtlm",
        "--kernels: h800-sxm: no kernel library \"trtlm\", found flashinfer-cutlass, sglang, "
        "trtllm; did you mean \"trtllm\"?");
}

TEST_F(PredictCli, a_card_from_its_datasheet_says_what_it_inherits) {
    const std::string card = saved("next.toml", kDatasheet);
    const auto shown = moehub("show " + card);
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_TRUE(shown.out.starts_with(
        "# Inherited from the blackwell generation: kernels.torch, overheads, "
        "kernels.flashinfer-trtllm, kernels.sglang, kernels.trtllm, "
        "kernels.trtllm-min-latency, exchange\n"))
        << shown.out.substr(0, 200);
    const auto time = moehub("predict gemm m=4096 n=7168 k=7168 --explain --gpu " + card);
    EXPECT_NE(time.out.find("are the generation's"), std::string::npos) << time.out;
}

TEST_F(PredictCli, a_generation_or_library_that_is_not_there_is_refused) {
    std::string misspelt = kDatasheet;
    misspelt.replace(misspelt.find("blackwell"), 9, "blackwel");
    const std::pair<std::string, std::string> wrong[] = {
        {misspelt,
         ":2: generation: unknown generation \"blackwel\"; did you mean \"blackwell\"? (ada, "
         "ampere, blackwell, hopper)"},
        {kDatasheet + "[kernels.trtlm.decode]\nstart = \"9 us\"\n",
         ":12: kernels.trtlm.decode: split_waves is missing, and a library that no generation has "
         "gives all of a kernel; did you mean \"trtllm\"?"}};
    for (const auto& [text, error] : wrong) {
        const std::string card = saved("next.toml", text);
        expect_refused("show " + card, card + error);
    }
}

TEST_F(PredictCli, a_constant_in_a_file_is_taken) {
    const std::string card =
        saved("next.toml", kDatasheet + "[kernels.trtllm.gemm_bf16]\nstart = \"90 us\"\n");
    const auto outcome = moehub("predict gemm m=1 n=64 k=64 --json --gpu " + card);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_GT(json["time_us"], 90);
}

TEST_F(PredictCli, an_inherited_constant_is_set) {
    const auto slow = moehub(
        "predict gemm --gpu gb300 --set kernels.trtllm.gemm.hbm=0.5 "
        "m=1 n=16384 k=16384 --json");
    ASSERT_EQ(slow.code, 0) << slow.err;
    const auto plain = moehub("predict gemm --gpu gb300 m=1 n=16384 k=16384 --json");
    const auto before = nlohmann::json::parse(plain.out);
    const auto after = nlohmann::json::parse(slow.out);
    EXPECT_GT(after["time_us"].get<double>(), 1.2 * before["time_us"].get<double>());
    expect_refused("predict gemm --set kernels.trtllm.gemm.hbm=0 m=1 n=1 k=1",
                   "--set: kernels.trtllm.gemm.hbm: found \"0\", allowed 0.001 to 1");
}

TEST_F(PredictCli, published_kernels_are_read_as_they_are) {
    const std::string rows =
        saved("rows.csv",
              "gpu,dtype,m,n,k,us\nb200,fp8,4096,7168,2048,90\nb999,fp8,1,1,1,9\n"
              "h100-sxm,nvfp4,64,64,64,9\n");
    const auto outcome = moehub("validate " + rows);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("b200 gemm fp8"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("unknown gpu \"b999\""), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("no tensor cores of the format nvfp4"), std::string::npos);
    const auto few = moehub("validate " + rows + " --above '10 us' --json");
    const auto json = nlohmann::json::parse(few.out);
    EXPECT_EQ(json["rows"].size(), 1u);
    expect_refused("validate " + rows + " --above 10",
                   "--above: expected a time such as \"250 ns\" (ps, ns, us, ms, s), found \"10\"");
}

TEST_F(PredictCli, a_layer_under_another_library_says_so) {
    const auto outcome = moehub("model --systems moe-hub --tokens 1024 --kernels trtllm --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("kernels=trtllm"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace predict_cli_test
