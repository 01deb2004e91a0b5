// Whole dense models, and attention under tensor parallelism beside experts: do parts add up, and
// is each what its kernels and sub-layers take?
#include "cli_fixture.hpp"
#include "model_parts.hpp"
#include "sim/gpu/transformer.hpp"
#include "study/model_rest.hpp"

#include <moehub/compare.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::tp_model_test {
namespace {

using nlohmann::json;

bool has(const ModelTime& time, const std::string& name) {
    return std::any_of(time.parts.begin(), time.parts.end(),
                       [&](const auto& one) { return one.name == name; });
}

/// A small LLaMA on four GPUs.
DenseInput small_dense(std::int64_t tokens = 256) {
    Model model = load_model("llama-7b");
    model.layers = 3;
    model.hidden = 512;
    model.dense_ffn = 1024;
    model.vocab = 1000;
    model.attention.heads = 8;
    model.attention.kv_heads = 4;
    model.attention.head_dim = 64;
    return {with_gpus(load_machine("dgx-h100"), 4), model, tokens};
}

std::vector<SystemSpec> systems() {
    return load_tp_systems({"ideal", "tp-nvls", "cais"});
}

Ps gemm(const Gpu& gpu, std::int64_t m, std::int64_t k, std::int64_t n) {
    return ps(kernel_seconds(gpu, GemmShape{m, k, n, true}));
}

TEST(DenseModels, a_model_is_the_sum_of_its_parts) {
    const DenseInput in = small_dense();
    ModelOptions options;
    options.eager = false;
    options.sequence = 128;
    const std::vector<ModelTime> times = simulate_dense_models(in, systems(), options);
    ASSERT_EQ(times.size(), 3u);
    const Gpu& gpu = in.machine.gpu;
    const auto copy = [&](double width) {
        return ps(stream_seconds(gpu, {256 * 2 * width, 256 * 2 * width}));
    };
    for (const ModelTime& time : times) {
        Ps sum = 0;
        for (const LayerTypeTime& one : time.parts) sum += one.count * one.forward;
        EXPECT_EQ(time.total, sum);
        EXPECT_FALSE(time.moe.has_value());
        for (const SubLayer kind : {SubLayer::l1, SubLayer::l2}) {
            const LayerResult alone =
                simulate_tp({in.machine, in.model, in.tokens, kind}, time.spec);
            const LayerTypeTime& made = part(time, "sub-layers " + std::string(name_of(kind)));
            EXPECT_EQ(made.forward, alone.time);
            EXPECT_EQ(made.count, 3);
        }
        const AttentionShape core{2, 2, 1, 128, 128, 64, 64, 0, true};
        EXPECT_EQ(part(time, "attention").forward,
                  2 * copy(128) + copy(64) + ps(attention_forward_seconds(gpu, core)));
        EXPECT_EQ(part(time, "activation").forward,
                  ps(stream_seconds(gpu, fused_activation_traffic(256 * 256))));
        const Ps norm = ps(stream_seconds(gpu, norm_traffic(gpu, 256, 512, Norm::rms)));
        EXPECT_EQ(part(time, "LM head").forward, copy(512) + norm + gemm(gpu, 256, 512, 250));
        EXPECT_FALSE(has(time, "host"));
        EXPECT_FALSE(has(time, "norms and residuals"));
    }
    EXPECT_EQ(baseline_of(times).system, "tp-nvls");
}

TEST(DenseModels, training_adds_gradients) {
    const DenseInput in = small_dense();
    ModelOptions options;
    options.eager = false;
    options.training = true;
    const ModelTime time = simulate_dense_models(in, load_tp_systems({"tp-nvls"}), options).front();
    ASSERT_EQ(time.sub_layers.size(), 4u);
    const Gpu& gpu = in.machine.gpu;
    // Weights of a GPU: out 128×512, up 512×512, down 256×512, QKV 512×256.
    const Ps up = gemm(gpu, 512, 256, 512);
    const Ps qkv = gemm(gpu, 256, 256, 512);
    const LayerResult& l3 = time.sub_layers[2].result;
    const LayerResult& l4 = time.sub_layers[3].result;
    EXPECT_EQ(part(time, "sub-layers L1").backward, l3.time + up + gemm(gpu, 512, 256, 128));
    EXPECT_EQ(part(time, "sub-layers L2").backward, l4.time + qkv + gemm(gpu, 512, 256, 256));
    for (const auto* name : {"attention", "activation", "LM head"})
        EXPECT_GT(part(time, name).backward, 0) << name;

    options.overlap_gradients = true;
    const ModelTime hidden =
        simulate_dense_models(in, load_tp_systems({"tp-nvls"}), options).front();
    EXPECT_EQ(part(hidden, "sub-layers L1").backward,
              part(time, "sub-layers L1").backward - std::min(up, l3.breakdown.communication));
    EXPECT_EQ(part(hidden, "sub-layers L2").backward,
              part(time, "sub-layers L2").backward - std::min(qkv, l4.breakdown.communication));
    EXPECT_EQ(hidden.flops, time.flops);
}

TEST(DenseModels, operations_are_those_of_the_matrices) {
    const DenseInput in = small_dense();
    const ModelTime time = simulate_dense_models(in, load_tp_systems({"ideal"})).front();
    const double matrices = 3 * (512.0 * 64 * (2 * 8 + 2 * 4) + 3 * 512.0 * 1024) + 1000.0 * 512;
    const double seen = 257 / 2.0;  // 3 layers of 8 heads, 64 numbers of key and of value
    EXPECT_NEAR(time.flops, 256 * (2 * matrices + 3 * 8 * 2 * 128 * seen), 1);
    EXPECT_GT(time.mfu, 0);
    EXPECT_LT(time.mfu, 1);
    EXPECT_TRUE(has(time, "host")) << "an eager host outside sub-layers";
}

TEST(DenseModels, one_gpu_has_all_of_it) {
    DenseInput in = small_dense();
    in.machine = with_gpus(in.machine, 1);
    for (const ModelTime& time : simulate_dense_models(in, systems())) EXPECT_GT(time.total, 0);
}

TEST(DenseModels, windowed_layers_are_of_their_own_kind) {
    DenseInput in = small_dense(1024);
    in.model.attention.window = 64;
    in.model.attention.window_layers = 2;
    const ModelTime time = simulate_dense_models(in, load_tp_systems({"ideal"})).front();
    EXPECT_EQ(part(time, "attention").count, 1);
    EXPECT_EQ(part(time, "attention, window 64").count, 2);
}

TEST(DenseModels, what_cannot_be_shared_is_refused) {
    const auto error = [](const DenseInput& in) {
        return error_of([&] { simulate_dense_models(in, systems()); });
    };
    const auto with_heads = [](int heads, int kv_heads) {
        DenseInput in = small_dense();
        in.model.attention.heads = heads;
        in.model.attention.kv_heads = kv_heads;
        return in;
    };
    EXPECT_EQ(error(with_heads(6, 6)),
              "model \"llama-7b\": found 6 attention heads, allowed: a multiple of the "
              "4 GPUs that share them");
    EXPECT_EQ(error(with_heads(12, 3)),
              "model \"llama-7b\": found 3 key-value heads, allowed: a multiple or a "
              "divisor of the 4 GPUs that share them");
    DenseInput in = small_dense();
    in.model.vocab = 0;
    EXPECT_EQ(error(in), "model \"llama-7b\": found no vocabulary, allowed: a whole dense model");
    in = small_dense();
    in.machine = with_gpus(load_machine("h100-cluster"), 16);
    EXPECT_EQ(error(in),
              "a dense model is under tensor parallelism: found 2 nodes, allowed: one node");
    in = small_dense();
    in.model = load_model("mixtral-8x7b");
    EXPECT_EQ(error(in), "model \"mixtral-8x7b\": found experts, allowed: a whole dense model");
}

TEST(DenseModels, key_value_heads_are_kept_by_several_where_they_are_few) {
    Model model = small_dense().model;
    model.attention.kv_heads = 2;
    EXPECT_EQ(slice_of(model, 4).attention.kv_heads, 1);
    EXPECT_EQ(slice_of(model, 4).attention.heads, 2);
    EXPECT_EQ(slice_of(model, 4).vocab, 250);
}

/// Attention under tensor parallelism beside experts.
struct Experts {
    explicit Experts(const std::string& name)
        : machine(with_gpus(load_machine("dgx-h800"), 4)),
          model(load_model(name)),
          routing(make_routing({}, model, 128)),
          placement(contiguous_placement(model.experts, 4)) {}
    ModelTime run(const ModelOptions& options) const {
        return simulate_models({machine, model, routing, placement}, load_systems({"ideal"}),
                               options)
            .front();
    }
    Machine machine;
    Model model;
    Routing routing;
    Placement placement;
};

TEST(SharedAttention, its_halves_are_simulated) {
    const Experts fixture("olmoe-1b-7b");
    ModelOptions options;
    options.eager = false;
    const ModelTime alone = fixture.run(options);
    options.attention_gpus = 2;
    options.attention_system = load_system("cais");
    const ModelTime shared = fixture.run(options);
    const Machine pair = with_gpus(fixture.machine, 2);
    for (const SubLayer half : {SubLayer::attention_in, SubLayer::attention_out}) {
        const LayerTypeTime& made = part(shared, std::string(name_of(half)));
        EXPECT_EQ(made.forward, simulate_tp({pair, fixture.model, 64, half}, "cais").time);
        EXPECT_EQ(made.count, fixture.model.layers);
    }
    EXPECT_EQ(part(shared, "MoE layers").forward, part(alone, "MoE layers").forward);
    EXPECT_EQ(part(shared, "LM head").forward, part(alone, "LM head").forward);
    EXPECT_FALSE(has(shared, "norms and residuals"));
    EXPECT_LT(part(shared, "attention").forward, part(alone, "attention").forward);
    ASSERT_EQ(shared.sub_layers.size(), 2u);
    EXPECT_TRUE(alone.sub_layers.empty());
}

TEST(SharedAttention, latents_are_expanded_by_heads) {
    const Experts fixture("deepseek-v2-lite");
    ModelOptions options;
    options.eager = false;
    options.attention_gpus = 4;
    const ModelTime time = fixture.run(options);
    const Gpu& gpu = fixture.machine.gpu;
    const Model slice = slice_of(fixture.model, 4);
    EXPECT_EQ(slice.attention.heads, 4);
    const Operations core = attention_core(slice, {128, 128}, 0);
    EXPECT_EQ(part(time, "attention").forward,
              block_time(gpu, core, Pass::forward, false).of(Part::attention));
    EXPECT_EQ(core.front().name, "query") << "queries are projected directly, by heads";
    EXPECT_EQ(core[1].name, "norm of the latent");
}

TEST(SharedAttention, what_cannot_be_shared_is_refused) {
    const Experts fixture("olmoe-1b-7b");
    ModelOptions options;
    options.attention_gpus = 3;
    EXPECT_EQ(error_of([&] { fixture.run(options); }),
              "attention under tensor parallelism: found groups of 3 GPUs, allowed: divisors of "
              "the 4 of a node");
    options.attention_gpus = 2;
    options.training = true;
    EXPECT_EQ(error_of([&] { fixture.run(options); }),
              "attention under tensor parallelism: found training, allowed: forward passes, its "
              "gradients are not modelled");
}

class TpModelCli : public cli_test::Cli {
  protected:
    json json_of(const std::string& arguments) const {
        const auto outcome = moehub(arguments + " --json");
        EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
        return json::parse(outcome.out);
    }
};

const std::string kDense =
    "model --model llama-7b --gpus 4 --set model.hidden=512 --set model.dense_ffn=1024 ";

TEST_F(TpModelCli, a_dense_model_is_timed) {
    const auto text = moehub(kDense + "--tokens 256");
    EXPECT_EQ(text.code, 0) << text.err;
    for (const auto* words :
         {"llama-7b on dgx-h100: 4 GPUs, 256 tokens, sub-layers L1, L2, row grain",
          "32 layers, forward, sequences of 256 tokens; outside sub-layers an eager host",
          "sub-layers L1", "sub-layers L2", "activation", "LM head", "vs tp-nvls", "of ideal",
          "Checked in every system: each GPU read each of 256 rows once"})
        EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
    const json all =
        json_of(kDense + "--training --graphs --set model.sequence=64 --set model.batch=2");
    EXPECT_EQ(all["tokens"], 128);
    EXPECT_EQ(all["sequence"], 64);
    EXPECT_EQ(all["baseline"], "tp-nvls");
    ASSERT_EQ(all["results"].size(), 3u);
    ASSERT_EQ(all["sub_layers"].size(), 12u) << "four under each of three systems";
    EXPECT_EQ(all["sub_layers"][11]["sub_layer"], "L4");
    EXPECT_FALSE(all.contains("moe_layer"));
    for (const json& one : all["results"]) {
        double sum = 0;
        for (const json& part : all["parts"])
            if (part["system"] == one["system"]) sum += part["total_us"].get<double>();
        EXPECT_NEAR(sum, one["time_us"], 1e-3);
    }
}

TEST_F(TpModelCli, what_does_not_fit_a_dense_model_is_refused) {
    for (const std::string option : {"--routing uniform", "--seed 2", "--replicas 1", "--tp 2",
                                     "--host eager", "--fp8", "--fused-activation"})
        expect_refused_about(kDense + option,
                             option.substr(0, option.find(' ')) +
                                 ": found with a dense model, allowed: with a model with experts");
    expect_refused_about(kDense + "--systems moe-hub", "system \"moe-hub\" runs MoE layers");
    expect_refused_about(kDense + "--attention-tp 2", "--attention-tp: found with a dense model");
    expect_refused_about("model --model llama-7b --machine h100-cluster --gpus 16",
                         "found 2 nodes, allowed: one node");
    expect_refused_about(
        "model --model llama-7b --set model.attention.heads=36 --set model.attention.kv_heads=36",
        "found 36 attention heads, allowed: a multiple of the 8 GPUs");
    expect_refused("model --overlap-gradients --training",
                   "--overlap-gradients: found with a model with experts, allowed: with a dense "
                   "model");
}

TEST_F(TpModelCli, attention_is_shared_beside_experts) {
    const std::string small = "model --gpus 4 --tokens 128 --systems ideal,moe-hub ";
    const auto text = moehub(small + "--attention-tp 2 --attention-system cais --host graph");
    EXPECT_EQ(text.code, 0) << text.err;
    for (const auto* words : {"attention under tensor parallelism in groups of 2 GPUs: cais",
                              "attention-in", "attention-out", "MoE layers"})
        EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
    const json all = json_of(small + "--attention-tp 4 --set system.tp-nvls.title=mine");
    EXPECT_EQ(all["attention_tp"]["gpus"], 4);
    EXPECT_EQ(all["attention_tp"]["system"], "tp-nvls");
    const json out = all["attention_sub_layers"][1];
    EXPECT_EQ(out["sub_layer"], "attention-out");
    EXPECT_GT(out["time_us"], 0);
    EXPECT_EQ(all["sequence"], 128) << "of the group";
    EXPECT_FALSE(json_of(small).contains("attention_tp"));

    expect_refused("model --attention-tp 3",
                   "--attention-tp: found 3, allowed: divisors of the 8 GPUs of a node");
    expect_refused_about("model --attention-tp 16", "allowed: a whole number from 1 to 8");
    expect_refused("model --attention-tp 2 --training",
                   "--attention-tp: found with --training, allowed: without it, attention's "
                   "gradients under tensor parallelism are not modelled");
    expect_refused("model --attention-system cais", "--attention-system requires --attention-tp");
    expect_refused_about("model --attention-tp 2 --attention-system deepep",
                         "system \"deepep\" runs MoE layers");
}

}  // namespace
}  // namespace moehub::tp_model_test
