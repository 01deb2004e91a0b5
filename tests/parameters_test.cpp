// Has every model preset as many parameters, in all and for one token, as its publisher counts?
#include <moehub/presets.hpp>

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace moehub::parameters_test {
namespace {

/// What publishers call active: what a token passes through. Some leave out the input embedding,
/// which is looked up and multiplies nothing.
enum class Embedding { counted, left_out };

struct Published {
    const char* name;
    double total;  ///< billions
    double active;
    double digit;  ///< last published digit of `active`, which is rounded, or cut off
    Embedding input;
};

// Totals of mixtral-8x7b, mixtral-8x22b and qwen3-235b-a22b are those of the published files'
// headers (norms and biases, which parameters() leaves out, are in them), of deepseek-v3 its
// README_WEIGHTS'; others as commonly published, unchecked, but for two whose publishers round too
// far: qwen2-57b-a14b (57 B) and kimi-k2 (1 T on its page, 1.04 T in its report) are the sums of
// their published tensors' shapes. Active counts are of model cards and technical reports.
const Published kPublished[] = {
    {"mixtral-8x7b", 46.703, 12.9, 0.1, Embedding::counted},   // Mixtral of Experts: 47 B and 13 B
    {"mixtral-8x22b", 140.62, 39.1, 0.1, Embedding::counted},  // Mistral's documentation
    {"qwen2-moe-2.7b", 14.316, 2.7, 0.1, Embedding::counted},
    {"qwen2-57b-a14b", 57.41, 14, 1, Embedding::counted},
    {"qwen3-30b-a3b", 30.532, 3.3, 0.1, Embedding::counted},
    {"qwen3-235b-a22b", 235.09, 22, 1, Embedding::counted},
    {"qwen3-32b", 32.762, 32.8, 0.1, Embedding::counted},
    {"llama-3.1-70b", 70.554, 70.6, 0.1, Embedding::counted},
    {"phi-3.5-moe", 41.873, 6.6, 0.1, Embedding::counted},
    {"olmoe-1b-7b", 6.919, 1.28, 0.01, Embedding::counted},       // OLMoE paper
    {"deepseek-v2-lite", 15.706, 2.4, 0.1, Embedding::left_out},  // DeepSeek-V2 paper
    {"deepseek-v3", 671, 36.6, 0.1, Embedding::left_out},         // with 0.9 B of the head
    {"gpt-oss-120b", 116.83, 5.13, 0.01, Embedding::left_out},    // model card, both
    {"kimi-k2", 1026.4, 32, 1, Embedding::left_out},              // card
    {"pangu-ultra-moe", 718, 39, 1, Embedding::left_out},         // paper, both
};

/// Shapes of papers that publish no count, and variants of the above.
const std::set<std::string> kUnpublished = {"dysharp-s",
                                            "dysharp-m",
                                            "dysharp-l",
                                            "gpt-oss-120b-dysharp",
                                            "qwen2-moe-2.7b-moehub",
                                            "llama-7b",
                                            "llama3-8x70b",
                                            "mixtral-8x22b-g8t8",
                                            "mega-gpt-4b",
                                            "mega-gpt-8b"};

double billions(std::int64_t count) {
    return static_cast<double>(count) * 1e-9;
}

TEST(Parameters, totals_are_within_half_a_percent_of_the_published) {
    for (const Published& one : kPublished)
        EXPECT_NEAR(billions(parameters(load_model(one.name))), one.total, 0.005 * one.total)
            << one.name;
}

TEST(Parameters, active_ones_are_the_published_to_their_last_digit) {
    for (const Published& one : kPublished) {
        const Model model = load_model(one.name);
        const std::int64_t lookup = std::int64_t{model.vocab} * model.hidden;
        const double found =
            billions(active_parameters(model) - (one.input == Embedding::left_out ? lookup : 0));
        EXPECT_GE(found, one.active - std::max(one.digit / 2, 0.005 * one.active)) << one.name;
        EXPECT_LT(found, one.active + std::max(one.digit, 0.005 * one.active)) << one.name;
    }
}

TEST(Parameters, every_preset_is_published_or_named_as_not) {
    std::set<std::string> known = kUnpublished;
    for (const Published& one : kPublished) known.insert(one.name);
    for (const std::string& name : preset_names("models"))
        EXPECT_TRUE(known.contains(name)) << name;
    EXPECT_EQ(known.size(), preset_names("models").size());
}

/// The paper's 39 B is published to two digits; without the input embedding it is met to 0.5 %.
TEST(Parameters, pangu_activates_thirty_nine_billion) {
    const Model pangu = load_model("pangu-ultra-moe");
    const std::int64_t lookup = std::int64_t{pangu.vocab} * pangu.hidden;
    EXPECT_NEAR(billions(active_parameters(pangu) - lookup), 39, 0.005 * 39);
}

TEST(Parameters, pangu_experts_hold_what_the_paper_implies) {
    const Model pangu = load_model("pangu-ultra-moe");
    EXPECT_EQ(pangu.moe_layers(), 58);
    Model without = pangu;
    without.experts = without.top_k;
    const std::int64_t router = 58LL * 7680 * (256 - 8);
    EXPECT_EQ(parameters(pangu) - parameters(without) - router, 58LL * 248 * 3 * 7680 * 2048);
}

TEST(Parameters, the_published_llama_is_that_of_the_paper_with_a_narrower_ffn) {
    Model llama = load_model("llama-7b");
    llama.dense_ffn = 11008;
    EXPECT_NEAR(billions(parameters(llama)), 6.738, 0.001);
}

/// Cutting experts leaves their weights; only the router grows.
TEST(Parameters, finer_grains_hold_the_same_experts) {
    const Model coarse = load_model("mixtral-8x22b");
    const Model fine = load_model("mixtral-8x22b-g8t8");
    EXPECT_EQ(parameters(fine) - parameters(coarse), 56LL * 6144 * (64 - 8));
    EXPECT_EQ(fine.experts * fine.expert_ffn, coarse.experts * coarse.expert_ffn);
}

/// Eight copies of Llama 3 70B's FFN, and all else once.
TEST(Parameters, upcycling_multiplies_the_ffn_alone) {
    const Model dense = load_model("llama-3.1-70b");
    const Model moe = load_model("llama3-8x70b");
    EXPECT_EQ(parameters(moe) - parameters(dense), 80LL * (7 * 3LL * 8192 * 28672 + 8192 * 8));
}

}  // namespace
}  // namespace moehub::parameters_test
