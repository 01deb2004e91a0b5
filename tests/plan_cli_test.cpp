// Runs `moehub plan`: what it prints, and the line for every kind of bad input.
#include "cli_fixture.hpp"

#include <nlohmann/json.hpp>

namespace plan_cli_test {
namespace {

using cli_test::Cli;
using cli_test::Outcome;
using cli_test::text_of;
using nlohmann::json;

/// Little enough to plan in a second.
const std::string kSmall =
    "plan --model mixtral-8x7b --machine dgx-h100 --gpus 8 --sequence 1024 --set model.layers=8 "
    "--set model.hidden=1024 ";
const std::string kBatch = "--global-batch 32 ";

class PlanCli : public Cli {
  protected:
    /// Columns on a terminal.
    static std::size_t widest(const std::string& text) {
        std::istringstream lines(text);
        std::size_t width = 0;
        for (std::string line; std::getline(lines, line);)
            width = std::max(
                width, static_cast<std::size_t>(std::count_if(
                           line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; })));
        return width;
    }
};

TEST_F(PlanCli, prints_layouts_parts_memory_and_front) {
    const Outcome outcome = moehub(kSmall + kBatch + "--fix mb=1,etp=1,sharding=zero1 --top 4");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    for (const char* part :
         {"mixtral-8x7b on dgx-h100: 8 GPUs, bf16, by megatron-26.04\n",
          "a step: 32 sequences of 1,024 tokens, 32,768 tokens; balanced routing\n",
          "parallel layout", "MFU", "tok/s/GPU", "limited by", "share of the step",
          "routed experts", "memory a GPU", "weights", "less memory, at what speed",
          " parallel layouts looked at: ", "The first in full: --explain "})
        EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
    EXPECT_NE(outcome.out.find("\n4  "), std::string::npos);
    EXPECT_EQ(outcome.out.find("\n5  "), std::string::npos);
}

TEST_F(PlanCli, json_has_all_that_is_asked) {
    const json plan = json_of(kSmall + kBatch + "--fix pp=2,etp=1,mb=1 --top 3");
    EXPECT_EQ(plan["model"], "mixtral-8x7b");
    EXPECT_EQ(plan["machine"], "dgx-h100");
    EXPECT_EQ(plan["trainer"], "megatron-26.04");
    EXPECT_EQ(plan["gpus"], 8);
    EXPECT_EQ(plan["global_batch"], 32);
    EXPECT_EQ(plan["tokens"], 32 * 1024);
    EXPECT_EQ(plan["precision"], "bf16");
    EXPECT_EQ(plan["fixed"], "pp=2,etp=1,mb=1");
    EXPECT_EQ(plan["set"], json::array({"model.layers=8", "model.hidden=1024"}));
    EXPECT_GT(plan["layouts"], plan["timed"]);
    ASSERT_EQ(plan["best"].size(), 3u);
    EXPECT_GE(plan["front"].size(), 1u);
    for (const json& step : plan["best"]) {
        EXPECT_EQ(step["layout"]["pp"], 2);
        EXPECT_TRUE(step["fits"]);
        double sum = 0;
        for (const auto& [name, seconds] : step["parts_seconds"].items())
            sum += seconds.get<double>();
        EXPECT_NEAR(sum, step["step_seconds"], 1e-6);
        double memory = 0;
        for (const auto& [name, bytes] : step["memory_bytes"].items())
            if (name != "sum") memory += bytes.get<double>();
        EXPECT_NEAR(memory, step["memory_bytes"]["sum"], 1);
        EXPECT_LE(memory, plan["capacity_bytes"]);
        const double tokens = plan["tokens"];
        EXPECT_NEAR(step["tokens_per_second_per_gpu"],
                    tokens / 8 / step["step_seconds"].get<double>(), 1e-6);
        EXPECT_NEAR(step["mfu"], step["flops_per_second_per_gpu"].get<double>() / 989.4e12, 0.001);
    }
}

TEST_F(PlanCli, explains_what_it_listed) {
    const json plan = json_of(kSmall + kBatch + "--fix mb=1,etp=1,sharding=zero1 --top 1");
    const json& best = plan["best"][0];
    const json one =
        json_of(kSmall + kBatch + "--explain " + best["layout"]["text"].get<std::string>());
    ASSERT_EQ(one["step"].size(), 1u);
    EXPECT_EQ(one["step"][0], best);
}

TEST_F(PlanCli, explains_one_layout) {
    const Outcome outcome = moehub(kSmall + kBatch + "--explain pp=4,ep=2");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* part : {"\npp=4,ep=2\n", " a step, ", "micro-batches of 1 sequence",
                             "It fits: ", "in all", "memory a GPU", "forward ms", "stage 3"})
        EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
    EXPECT_LE(widest(outcome.out), 100u);
    const Outcome large =
        moehub("plan --model mixtral-8x22b --gpus 8 --global-batch 8 --explain ep=8");
    EXPECT_EQ(large.code, 0) << large.err;
    EXPECT_NE(large.out.find("It does not fit: "), std::string::npos) << large.out;
}

TEST_F(PlanCli, compares_systems) {
    const std::string arguments =
        kSmall + kBatch + "--fix mb=1,tp=1,ep=8 --system all-to-all,moe-hub --top 2";
    const Outcome outcome = moehub(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("vs all-to-all"), std::string::npos) << outcome.out;
    const json plan = json_of(arguments);
    ASSERT_EQ(plan["systems"].size(), 2u);
    EXPECT_EQ(plan["systems"][0]["layout"]["system"], "all-to-all");
    EXPECT_EQ(plan["systems"][1]["layout"]["system"], "moe-hub");
}

TEST_F(PlanCli, writes_a_page_and_a_table) {
    const std::string page = file("plan.html");
    const std::string table = file("plan.csv");
    const Outcome outcome =
        moehub(kSmall + kBatch + "--fix mb=1,tp=1,ep=8 --top 2 --html " + page + " --csv " + table);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* part : {"The fastest parallel layouts", "Memory of the fullest GPU",
                             "parallel layouts looked at", "Trainer: megatron-26.04"})
        EXPECT_NE(text_of(page).find(part), std::string::npos) << part;
    const std::string rows = text_of(table);
    EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 3) << rows;
    EXPECT_TRUE(rows.starts_with("rank,layout.text,mfu,tokens_per_second_per_gpu,step_seconds,"));
}

/// Keys of a layout are swept like any others, and a layout that cannot be is refused alone.
TEST_F(PlanCli, is_swept) {
    const std::string run =
        " --set model=mixtral-8x7b --set machine=dgx-h100 --set gpus=8 --set sequence=1024 --set "
        "model.layers=8 --set model.hidden=1024 --set global_batch=32";
    const std::string sweep = "sweep --kind plan -o " + file("a.sqlite") + run;
    const json explained = json_of(sweep + " --set explain.ep=8 --sweep explain.tp=1,2,16");
    ASSERT_EQ(explained["results"].size(), 3u);
    const json one = json_of(kSmall + kBatch + "--explain tp=2,ep=8")["step"][0];
    EXPECT_EQ(explained["results"][1]["explain.tp"], 2);
    EXPECT_EQ(explained["results"][1]["step_seconds"], one["step_seconds"]);
    EXPECT_EQ(explained["results"][1]["mfu"], one["mfu"]);
    EXPECT_EQ(explained["results"][1]["memory_bytes.sum"], one["memory_bytes"]["sum"]);
    EXPECT_NE(explained["results"][2]["refused"].get<std::string>().find("more than 8 GPUs"),
              std::string::npos);
    const json planned =
        json_of("sweep --kind plan -o " + file("b.sqlite") + run +
                " --set fix=mb=1,tp=1 --systems all-to-all,moe-hub --sweep fix.ep=4");
    ASSERT_EQ(planned["results"].size(), 2u);
    EXPECT_EQ(planned["results"][1]["system"], "moe-hub");
    EXPECT_GT(planned["results"][1]["speedup"], 1);
    expect_refused_about(sweep + " --sweep fix.tpp=1,2", "did you mean \"fix.tp\"?");
    expect_refused_about(sweep + " --sweep search_model=true,false",
                         "unknown key \"search_model\"");
}

TEST_F(PlanCli, writes_to_a_file) {
    const std::string path = file("plan.json");
    const std::string arguments = kSmall + kBatch + "--fix mb=1,tp=1,ep=8 --json";
    EXPECT_EQ(moehub(arguments + " -o " + path).out, "");
    EXPECT_EQ(text_of(path), moehub(arguments + " --threads 1").out);
}

TEST_F(PlanCli, refuses_bad_input) {
    expect_refusals(kSmall + kBatch, R"(
--top 0
    --top: found "0", allowed: a whole number from 1 to 1000
--fix tp=3
    tp·cp·pp = 3 does not divide 8 GPUs
--fix tpp=2
    did you mean "tp"?…
--fix tp
    is not KEY=VALUE…
--fix tp=2,pp=2,tp=4
    "tp" is found twice…
--fix tp=0
    tp is "0"…
--fix sharding=zero4
    sharding is "zero4", allowed: none…
--fix recompute=half
    recompute is "half"…
--fix ep=3
    ep·etp·pp = 3 does not divide 8 GPUs…
--fix pp=8,vpp=2
    pp·vpp = 16 is more than the 10 parts…
--fix mb=64
    a global batch of 32 does not divide…
--precision fp4
    --precision: found "fp4", allowed: bf16…
--routing skewed
    --routing: …
--trainer nobody
    nobody…
--system nobody
    unknown system "nobody"…
--system deepep --fix system=deepep
    one of the two…
--fix system=moehub
    did you mean "moe-hub"?…
--explain tp=2 --top 3
    --top: found with --explain, allowed: with a search of layouts or --search-model…
--explain tp=2 --fix pp=2
    --fix: found with --explain…
--explain tp=16
    more than 8 GPUs…
--explain ''
    --explain: …
--set trainer.graph=1
    graph…
--threads 0
    --threads: found "0"…
-o /none/plan.txt
    /none/plan.txt…
)");
    expect_refused_about(kSmall + "--global-batch 0", "--global-batch: found \"0\"");
    expect_refused_about("plan --sequence 4095 --fix tp=2", "4095");
    expect_refused_about("plan --sequence 0", "--sequence: found \"0\"");
    expect_refused_about("plan --machine dgx-h100 --gpus 12",
                         "--gpus: found \"12\", allowed: a whole number from 1 to 8");
    expect_refused_about("plan --model llama-7b --machine dgx-h100 --gpus 8 --system deepep",
                         "has no experts");
    expect_refused_about("plan --machine ascend-910b-cluster --gpus 8 --precision fp8",
                         "no FP8 units");
}

#ifndef MOEHUB_SANITIZED  // long, and in code that shorter tests run
TEST_F(PlanCli, ranks_published_runs) {
    const std::string runs = file("runs.csv");
    std::ofstream(runs)
        << "model,machine,gpus,precision,global_batch,micro_batch,sequence,tp,pp,vpp,cp,ep,etp,"
           "sharding,dispatcher,routing,overlap,recompute,tokens_per_s_per_gpu,tflops_per_gpu,mfu,"
           "step_s,source,note\n"
           "mixtral-8x7b,dgx-h100,8,bf16,32,1,1024,1,1,1,1,8,1,zero1,all-to-all,balanced,none,none,"
           ",,30,,MoE ModelZoo,\n"
           "mixtral-8x7b,dgx-h100,8,bf16,32,1,1024,8,1,1,1,1,8,zero1,,balanced,none,none,"
           ",,10,,MoE ModelZoo,\n"
           "mixtral-8x7b,dgx-h100,8,bf16,32,1,1024,2,2,1,1,4,1,zero1,all-to-all,balanced,none,none,"
           ",,20,,MoE ModelZoo,\n";
    const json ranking = json_of("plan --rank " + runs);
    ASSERT_EQ(ranking["groups"].size(), 1u);
    EXPECT_EQ(ranking["groups"][0]["runs"], 3);
    EXPECT_EQ(ranking["runs"].size(), 3u);
    EXPECT_EQ(ranking["groups"][0]["pairs"], 3);
    expect_refused_about("plan --rank " + runs + " --gpus 8", "--gpus: found with --rank");
    expect_refused_about("plan --rank " + file("none.csv"), "none.csv");
}
#endif

TEST_F(PlanCli, searches_shapes) {
    const std::string axes = file("axes.toml");
    std::ofstream(axes) << "layers = '6..10'\nhidden = '1024, 2048'\n";
    const std::string search = kSmall + kBatch +
                               "--fix tp=2,pp=2,ep=4,mb=1 --search-model --params 14e9±80% "
                               "--active 4e9±90% --shapes " +
                               axes;
    const Outcome outcome = moehub(search);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* part : {"8 of 10 shapes of the axes", "mixtral-8x7b itself, 8 layers",
                             "The fastest shape with each value of an axis"})
        EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
    const json found = json_of(search + " --top 3");
    EXPECT_EQ(found["best"].size(), 3u);
    EXPECT_GE(found["best"][0]["tokens_per_second_per_gpu"],
              found["best"][1]["tokens_per_second_per_gpu"]);
    expect_refused_about(kSmall + "--params 14e9",
                         "--params: found with a search of layouts, allowed: with --search-model");
    expect_refused_about(kSmall + "--search-model --explain tp=2",
                         "--search-model: found with --explain");
    expect_refused_about(kSmall + kBatch + "--search-model --params 14x9", "--params: ");
    expect_refused_about(kSmall + kBatch + "--search-model --shapes nowhere", "nowhere");
}

/// What is printed to the last digit, and so what is simulated.
TEST_F(PlanCli, prints_as_the_golden_plan) {
    expect_golden(kSmall + kBatch + "--fix mb=1,etp=1,sharding=zero1 --top 3", "plan.txt");
    expect_golden(kSmall + kBatch + "--explain pp=4,ep=2", "plan_explain.txt");
}

#ifndef MOEHUB_SANITIZED  // dozens of simulated layers; other tests run fewer
TEST_F(PlanCli, says_what_would_fit_when_nothing_does) {
    expect_refused_about("plan --gpus 8 --global-batch 16 --sequence 1024 --fix mb=1,etp=1",
                         "more than it has; 16 GPUs would do: ");
    expect_refused_about(
        "plan --gpus 8 --global-batch 16 --sequence 1024 --fix mb=1,etp=1 --machine dgx-h100",
        "8 GPUs of this machine would not do either");
}
#endif

}  // namespace
}  // namespace plan_cli_test
