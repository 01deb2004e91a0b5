// Whole models: do parts add up, and does each take what its operators take?
#include "model_parts.hpp"
#include "sim/gpu/transformer.hpp"

#include <moehub/compare.hpp>
#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

namespace moehub::model_time_test {
namespace {

class ModelTimes : public ::testing::Test {
  protected:
    struct Fixture {
        Machine machine = with_gpus(load_machine("dgx-h800"), 4);
        Model model;
        Routing routing;
        Placement placement;
        explicit Fixture(const std::string& name, std::int64_t tokens)
            : model(load_model(name)),
              routing(make_routing({}, model, tokens)),
              placement(contiguous_placement(model.experts, 4)) {}
        LayerInput input() const { return {machine, model, routing, placement}; }
        std::vector<ModelTime> run(const ModelOptions& options) const {
            return simulate_models(input(), load_systems({"ideal", "megatron-te"}), options);
        }
    };
};

int kernels(const Operations& operations, Pass pass) {
    int count = 0;
    for (const Operation& one : operations)
        count += static_cast<int>((pass == Pass::forward ? one.forward : one.backward).size());
    return count;
}

bool has(const Operations& operations, std::string_view name) {
    return std::any_of(operations.begin(), operations.end(),
                       [&](const Operation& one) { return one.name == name; });
}

TEST_F(ModelTimes, parts_add_up) {
    const Fixture fixture("deepseek-v2-lite", 512);
    ModelOptions options;
    options.training = true;
    const std::vector<ModelTime> times = fixture.run(options);
    ASSERT_EQ(times.size(), 2u);
    for (const ModelTime& time : times) {
        Ps sum = 0;
        for (const LayerTypeTime& one : time.parts) sum += one.count * (one.forward + one.backward);
        EXPECT_EQ(time.total, sum);
        EXPECT_NEAR(time.tokens_per_second, 512 / to_seconds(sum), 1e-3);
        EXPECT_NEAR(time.mfu * to_seconds(sum) * 4 * fixture.machine.gpu.bf16_flops, time.flops,
                    1e-6 * time.flops);
        EXPECT_EQ(part(time, "MoE layers").count, 26);
        EXPECT_EQ(part(time, "dense FFNs").count, 1);
        EXPECT_EQ(part(time, "attention").count, 27);
    }
}

TEST_F(ModelTimes, only_the_moe_layer_is_the_systems) {
    const Fixture fixture("mixtral-8x7b", 512);
    const std::vector<ModelTime> times = fixture.run({});
    ASSERT_EQ(times[0].parts.size(), times[1].parts.size());
    for (std::size_t i = 0; i < times[0].parts.size(); ++i) {
        const LayerTypeTime& one = times[0].parts[i];
        if (one.name != "MoE layers") {
            EXPECT_EQ(one.forward, times[1].parts[i].forward) << one.name;
        }
        EXPECT_EQ(one.backward, 0) << one.name;
    }
    const Comparison layer = compare(fixture.input(), {"ideal", "megatron-te"});
    for (std::size_t i = 0; i < times.size(); ++i) {
        EXPECT_EQ(part(times[i], "MoE layers").forward, layer.rows[i].result.time);
        EXPECT_FALSE(times[i].moe_backward.has_value());
    }
    EXPECT_EQ(baseline_of(times).system, "megatron-te");
    EXPECT_EQ(baseline_of({times[0]}).system, "ideal");
}

TEST_F(ModelTimes, attention_takes_what_its_kernels_take) {
    const Fixture fixture("mixtral-8x7b", 2048);
    const Gpu& gpu = fixture.machine.gpu;
    ModelOptions options;
    options.eager = false;
    options.sequence = 256;
    const ModelTime time = fixture.run(options).front();

    const auto gemm = [&](std::int64_t k, std::int64_t n) {
        const GemmPlan plan = plan_gemm(gpu, {512, k, n, true});
        return ps(plan.start + tiles_seconds(gpu, plan) + plan.finish);
    };
    const auto copy = [&](double width) {
        return ps(stream_seconds(gpu, {512 * 2 * width, 512 * 2 * width}));
    };
    const AttentionShape core{2, 32, 8, 256, 256, 128, 128, 0, true};
    EXPECT_EQ(part(time, "attention").forward, gemm(4096, 6144) + 2 * copy(4096) + copy(1024) +
                                                   ps(attention_forward_seconds(gpu, core)) +
                                                   gemm(4096, 4096));
    const Ps norm = ps(stream_seconds(gpu, norm_traffic(gpu, 512, 4096, Norm::rms)));
    const Ps add = ps(stream_seconds(gpu, residual_traffic(512 * 4096)));
    EXPECT_EQ(part(time, "norms and residuals").forward, 2 * norm + 2 * add);
    EXPECT_EQ(part(time, "LM head").forward, copy(4096) + norm + gemm(4096, 32000));
    EXPECT_EQ(time.parts.back().name, "LM head") << "graphs wait for no host";
}

TEST_F(ModelTimes, a_short_block_is_as_long_as_its_host_needs) {
    Gpu gpu = load_gpu("h800-sxm");
    gpu.overheads.eager_launch = 42 * kUs;  // longer than any kernel of 16 tokens
    const Operations block = attention_block(load_model("mixtral-8x7b"), {16, 16}, 0);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
        const Operation& last = pass == Pass::forward ? block.back() : block.front();
        const Kernel& kernel = pass == Pass::forward ? last.forward.back() : last.backward.back();
        const BlockTime time = block_time(gpu, block, pass, true);
        EXPECT_EQ(
            std::accumulate(time.kernels.begin(), time.kernels.end(), time.host),
            kernels(block, pass) * gpu.overheads.eager_launch + ps(kernel_seconds(gpu, kernel)));
    }
}

TEST_F(ModelTimes, a_long_block_hides_its_host) {
    const Gpu gpu = load_gpu("h800-sxm");
    const Operations block = attention_block(load_model("mixtral-8x7b"), {65536, 4096}, 0);
    const BlockTime eager = block_time(gpu, block, Pass::forward, true);
    const BlockTime graph = block_time(gpu, block, Pass::forward, false);
    EXPECT_EQ(graph.host, 0);
    EXPECT_EQ(eager.kernels, graph.kernels);
    EXPECT_EQ(eager.host, gpu.overheads.eager_launch) << "only for the first operator";
}

TEST_F(ModelTimes, training_takes_more_than_twice_the_forward_pass) {
    const Fixture fixture("mixtral-8x7b", 4096);
    ModelOptions options;
    options.eager = false;  // a host that launches is hidden behind longer kernels
    const std::vector<ModelTime> forward = fixture.run(options);
    options.training = true;
    const std::vector<ModelTime> both = fixture.run(options);
    for (std::size_t i = 0; i < both.size(); ++i) {
        EXPECT_GT(both[i].total, 2 * forward[i].total) << both[i].system;
        EXPECT_EQ(both[i].flops, 3 * forward[i].flops);
        EXPECT_EQ(both[i].moe->time, forward[i].moe->time);
        ASSERT_TRUE(both[i].moe_backward.has_value());
        for (const LayerTypeTime& one : both[i].parts)
            EXPECT_GT(one.backward, one.forward) << one.name;
    }
}

TEST_F(ModelTimes, latent_projections_are_those_of_the_model) {
    const Model large = load_model("deepseek-v3");
    const Operations with_latent = attention_block(large, {1024, 1024}, 0);
    EXPECT_TRUE(has(with_latent, "query, down"));
    const Operations direct = attention_block(load_model("deepseek-v2-lite"), {1024, 1024}, 0);
    EXPECT_FALSE(has(direct, "query, down"));
    EXPECT_TRUE(has(direct, "key and value, up"));

    const AttentionShape shape = attention_shapes(large, {1024, 1024}, 0).front();
    EXPECT_EQ(shape.qk_dim, 192);
    EXPECT_EQ(shape.v_dim, 128);
    EXPECT_EQ(shape.kv_heads, 128);

    double weights = 0;  // weights of one layer's attention, from its GEMMs
    for (const Operation& one : with_latent)
        for (const Kernel& kernel : one.forward)
            if (const auto* gemm = std::get_if<GemmShape>(&kernel))
                weights += static_cast<double>(gemm->k * gemm->n);
    Model one_more = large;
    ++one_more.layers;
    ++one_more.dense_layers;
    one_more.dense_ffn = 0;
    Model same = large;
    same.dense_ffn = 0;
    EXPECT_EQ(weights, static_cast<double>(parameters(one_more) - parameters(same)));
}

TEST_F(ModelTimes, operators_are_as_many_as_the_docs_say) {
    const auto counts = [](const Operations& list) {
        return std::pair(kernels(list, Pass::forward), kernels(list, Pass::backward));
    };
    const Model model = load_model("deepseek-v3");
    EXPECT_EQ(counts(attention_block(load_model("mixtral-8x7b"), {64, 64}, 0)), std::pair(10, 12));
    EXPECT_EQ(counts(attention_block(model, {64, 64}, 0)), std::pair(14, 20));
    EXPECT_EQ(counts(attention_block(load_model("deepseek-v2-lite"), {64, 64}, 0)),
              std::pair(12, 17));
    EXPECT_EQ(counts(dense_ffn(model, 64)), std::pair(3, 5));
    EXPECT_EQ(counts(head(model, 64, true)), std::pair(4, 5));
    EXPECT_EQ(counts(head(model, 64, false)).first, 3);
}

TEST_F(ModelTimes, windowed_layers_are_of_their_own_kind) {
    const Fixture fixture("gpt-oss-120b", 4 * 4096);
    ModelOptions options;
    options.eager = false;
    const ModelTime time =
        simulate_models(fixture.input(), load_systems({"ideal"}), options).front();
    EXPECT_EQ(part(time, "attention").count, 18);
    EXPECT_EQ(part(time, "attention, window 128").count, 18);
    EXPECT_LT(part(time, "attention, window 128").forward, part(time, "attention").forward);
    EXPECT_EQ(part(time, "norms and residuals").count, 36);
}

TEST_F(ModelTimes, sequences_are_whole_on_a_gpu) {
    const Model model = load_model("mixtral-8x7b");  // sequences of 4,096
    EXPECT_EQ(sequences_of(model, 8192, 8, 0).length, 1024) << "no more than the GPU has";
    EXPECT_EQ(sequences_of(model, 65536, 8, 0).length, 4096);
    EXPECT_EQ(sequences_of(model, 65536, 8, 100).length, 100);
    EXPECT_EQ(sequences_of(model, 10, 4, 0).tokens, 3) << "of the fullest";
    const auto shapes = attention_shapes(model, {250, 100}, 0);
    ASSERT_EQ(shapes.size(), 2u);
    EXPECT_EQ(shapes[0].batch, 2);
    EXPECT_EQ(shapes[1].queries, 50);
}

TEST_F(ModelTimes, flops_are_those_of_the_matrices_and_of_seen_keys) {
    Model model = load_model("mixtral-8x7b");
    const double matrices = 2.0 * static_cast<double>(active_parameters(model) - 32000LL * 4096);
    // A query sees 1, 2, … 1,024 keys; 32 layers of 32 heads, 128 numbers of key and of value.
    const double seen = 1025 / 2.0;
    EXPECT_DOUBLE_EQ(flops_per_token(model, {2048, 1024}), matrices + 32 * 32 * 2 * 256 * seen);
    model.attention.window = 1;
    model.attention.window_layers = 32;
    EXPECT_DOUBLE_EQ(flops_per_token(model, {2048, 1024}), matrices + 32 * 32 * 2 * 256);
}

// Four layers, and once more for a host whose counts a round before did not have.
TEST_F(ModelTimes, every_simulation_is_reported) {
    const Fixture fixture("olmoe-1b-7b", 64);
    ModelOptions options;
    options.training = true;
    options.threads = 1;
    std::vector<std::size_t> reports;
    std::size_t known = 0;
    options.progress = [&](std::size_t done, std::size_t total) {
        known = total;
        reports.push_back(done);
    };
    fixture.run(options);
    EXPECT_EQ(reports, (std::vector<std::size_t>{1, 2, 3, 4, 5}));
    EXPECT_EQ(known, 5u);
}

TEST_F(ModelTimes, models_that_are_not_whole_are_refused) {
    Fixture fixture("mixtral-8x7b", 64);
    const auto refused = [&](const std::string& what) {
        try {
            fixture.run({});
            ADD_FAILURE() << "not refused: no " << what;
        } catch (const InputError& error) {
            EXPECT_EQ(std::string(error.what()), "model \"mixtral-8x7b\": found no " + what +
                                                     ", allowed: a whole model with experts");
        }
    };
    fixture.model.vocab = 0;
    refused("vocabulary");
    fixture.model.attention.heads = 0;
    refused("attention heads");
    fixture.model.experts = 0;
    refused("MoE layers");
    fixture.model = load_model("mixtral-8x7b");
    EXPECT_THROW(load_systems({}), InputError);
    EXPECT_THROW(load_systems({"nobody"}), InputError);
}

}  // namespace
}  // namespace moehub::model_time_test
