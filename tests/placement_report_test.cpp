// What the answer of a placement says, and that it says what was evaluated.
#include "answers/placed.hpp"
#include "asking.hpp"
#include "hidden_topics.hpp"

#include <moehub/presets.hpp>

#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::placement_report_test {
namespace {

using Document = nlohmann::ordered_json;

struct Case {
    PlaceTask task;
    Placed placed;

    Case() {
        task.input = {.profiles = {topic_profile({}, 1)}, .gpus = 4};
        task.options.time_limit = 0.02;
        task.machine_name = "dgx-h100";
    }
    PlacementReport report() {
        placed.result = place(task.input, task.options);
        return placement_report(task, placed);
    }
};

std::string text_of(const PlacementReport& report) {
    return text_of(placement_answer(report), {});
}

Document json_of(const PlacementReport& report) {
    return Document::parse(json_text(placement_answer(report)));
}

/// The figures of the layout found, of the first profile of those by which it was placed, or
/// judged.
Document found_in(const Document& json, bool held_out = false) {
    for (const Document& row : json["layouts"])
        if (row["layout"] == json["method"] && row["held_out"] == held_out) return row;
    return {};
}

void forget_tokens(Profile& profile) {
    profile.tokens = 0;
    profile.top_k = 0;
    profile.chosen.clear();
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(PlacementReport, rows_are_what_evaluate_says) {
    Case one;
    one.task.held_out = {topic_profile({}, 2)};
    const PlacementReport report = one.report();
    ASSERT_EQ(report.training.size(), 1u);
    ASSERT_EQ(report.held_out.size(), 1u);
    const auto& rows = report.held_out[0].rows;
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(report.held_out[0].layouts,
              (std::vector<std::string>{"contiguous", "eplb", "joint"}));
    const auto own = evaluate(one.task.held_out[0], one.placed.result.layout);
    EXPECT_EQ(rows[2].gpus_per_token, own.gpus_per_token);
    EXPECT_EQ(rows[2].load_max_over_mean, own.load_max_over_mean);
    EXPECT_EQ(rows[0].gpus_per_token,
              evaluate(one.task.held_out[0], contiguous_layout({3, 8}, 4)).gpus_per_token);
    EXPECT_EQ(report.training[0].found().gpus_per_token,
              one.placed.result.profiles[0].gpus_per_token);
    EXPECT_LT(own.gpus_per_token, rows[0].gpus_per_token - 0.3) << "topics were found";
}

TEST(PlacementReport, the_evaluation_is_the_weighted_mean) {
    Case one;
    one.task.held_out = {topic_profile({}, 2), topic_profile({}, 3)};
    one.task.held_out[0].weight = 3;
    const PlacementReport report = one.report();
    const Document json = json_of(report);
    std::vector<double> found;
    for (const Document& row : json["layouts"])
        if (row["held_out"] == true && row["layout"] == "joint")
            found.push_back(row["gpus_per_token"]);
    ASSERT_EQ(found.size(), 2u);
    const auto [a, b] = std::pair(found[0], found[1]);
    EXPECT_NE(a, b);
    EXPECT_NEAR(json["evaluation"]["gpus_per_token"], (3 * a + b) / 4, 1e-12);
    EXPECT_EQ(json["held_out"], true);
}

TEST(PlacementReport, keys_are_always_the_same) {
    std::vector<std::string> expected;
    for (const int kind : {0, 1, 2}) {
        Case one;
        if (kind == 1) forget_tokens(one.task.input.profiles[0]);
        if (kind == 2) one.task.input.profiles = {topic_profile({.layers = 1}, 1)};
        const Document json = json_of(one.report());
        std::vector<std::string> keys;
        for (const auto& [key, value] : json.items()) keys.push_back(key);
        for (const auto& [key, value] : json["evaluation"].items()) keys.push_back(key);
        if (expected.empty()) expected = keys;
        EXPECT_EQ(keys, expected);
        for (const auto* key : {"effects", "pareto", "file", "model"})
            EXPECT_TRUE(json[key].is_null()) << key;
    }
}

TEST(PlacementReport, what_is_not_known_is_null) {
    Case counts;
    forget_tokens(counts.task.input.profiles[0]);
    const PlacementReport report = counts.report();
    const Document json = json_of(report);
    EXPECT_EQ(json["objective"], "load");
    EXPECT_GE(json["evaluation"]["load_max_over_mean"], 1);
    for (const auto* key : {"gpus_per_token", "off_gpu_transitions", "heaviest_pair",
                            "activated_max_over_mean", "moved_experts"})
        EXPECT_TRUE(json["evaluation"][key].is_null()) << key;
    EXPECT_TRUE(json["top_k"].is_null());
    EXPECT_TRUE(has(text_of(report), ", counts, placed by"));

    Case layer;
    layer.task.input.profiles = {topic_profile({.layers = 1}, 1)};
    const Document single = json_of(layer.report());
    EXPECT_TRUE(single["evaluation"]["off_gpu_transitions"].is_null());
    EXPECT_GE(single["evaluation"]["gpus_per_token"], 1);
}

TEST(PlacementReport, gaps_are_above_bounds) {
    Case one;
    const PlacementReport report = one.report();
    const Document json = json_of(report);
    EXPECT_GE(json["gap"], 0);
    for (const auto& [key, bound] : json["bounds"].items()) {
        if (bound.is_null()) continue;
        const double value = found_in(json)[key];
        EXPECT_NEAR(json["gaps"][key], value / bound.get<double>() - 1, 1e-12) << key;
    }
}

TEST(PlacementReport, pairs_sum_to_one_and_leave_what_evaluate_says) {
    Case one;
    const PlacementReport report = one.report();
    const auto pairs = pair_traffic(one.task.input.profiles, one.placed.result.layout);
    ASSERT_EQ(pairs.size(), 4u);
    double all = 0, kept = 0;
    for (std::size_t gpu = 0; gpu < pairs.size(); ++gpu) {
        all += std::accumulate(pairs[gpu].begin(), pairs[gpu].end(), 0.0);
        kept += pairs[gpu][gpu];
    }
    EXPECT_NEAR(all, 1, 1e-12);
    EXPECT_NEAR(1 - kept, report.training[0].found().off_gpu_transitions, 1e-12);
    forget_tokens(one.task.input.profiles[0]);
    EXPECT_TRUE(pair_traffic(one.task.input.profiles, one.placed.result.layout).empty());
}

TEST(PlacementReport, says_where_the_figures_come_from) {
    Case alone;
    alone.task.input.profiles[0].name = "law.npy";
    const std::string text = text_of(alone.report());
    EXPECT_TRUE(has(text, "--profile law.npy:0-0.5 --evaluate law.npy:0.5-1")) << text;
    EXPECT_TRUE(has(text, "On the profile, against contiguous: a token goes to")) << text;
    EXPECT_TRUE(has(text, "home GPU")) << text;
    EXPECT_TRUE(has(text, "-o FILE writes the layout")) << text;
    EXPECT_FALSE(has(text, "held out")) << text;

    Case judged;
    judged.task.held_out = {topic_profile({}, 2)};
    const std::string other = text_of(judged.report());
    EXPECT_TRUE(has(other, "topics, 400 tokens, held out\n")) << other;
    EXPECT_TRUE(has(other, "On held-out tokens, against contiguous")) << other;
    EXPECT_FALSE(has(other, ":0-0.5")) << other;
}

TEST(PlacementReport, warns_when_load_does_not_carry_over) {
    Case one;
    one.task.held_out = {topic_profile({}, 2)};
    PlacementReport report = one.report();
    const std::string warning = "The load does not carry over";
    const double training = report.training[0].found().load_max_over_mean;
    report.held_out[0].rows.back().load_max_over_mean = training + 0.02;
    EXPECT_FALSE(has(text_of(report), warning));
    report.held_out[0].rows.back().load_max_over_mean = training + 0.04;
    EXPECT_TRUE(has(text_of(report), warning));
}

TEST(PlacementReport, advises_only_what_is_not_given_yet) {
    Case one;
    one.task.held_out = {topic_profile({}, 2)};
    PlacementReport report = one.report();
    report.held_out[0].rows.back().load_max_over_mean = 3;
    const auto advice = [&report] { return placement_sentences(report)[1]; };
    EXPECT_TRUE(has(advice(), "as well as the rest")) << advice();
    EXPECT_TRUE(has(advice(), "--load-blocks 4, --replicas")) << advice();
    one.task.options.load_blocks = 2;
    EXPECT_FALSE(has(advice(), "--load-blocks")) << advice();
    EXPECT_TRUE(has(advice(), "--replicas or several profiles help.")) << advice();
    forget_tokens(one.task.held_out[0]);
    EXPECT_FALSE(has(advice(), "the rest")) << advice();
}

TEST(PlacementReport, tokens_are_held_back_only_where_there_are_some) {
    Case one;
    PlacementReport report = one.report();
    const auto advice = [&report] { return placement_sentences(report)[1]; };
    const std::string back = "back: --profile topics:0-0.5";
    EXPECT_TRUE(has(advice(), "To hold tokens " + back)) << advice();
    Profile& profile = one.task.input.profiles[0];
    profile.tokens = 1;
    EXPECT_FALSE(has(advice(), "back")) << advice();
    profile.tokens = 0;
    EXPECT_FALSE(has(advice(), "back")) << advice();
    profile.steps = 2;
    EXPECT_TRUE(has(advice(), "To hold steps " + back)) << advice();
}

TEST(PlacementReport, says_what_the_bound_is_worth) {
    Case one;
    PlacementReport report = one.report();
    PlaceResult& result = one.placed.result;
    result.notes.clear();
    one.task.options.load_cap = 1.06;
    report.training[0].rows.back().load_worst_layer = 1.05;
    const auto says = [&](double value, double bound) {
        result.value = value;
        result.bound = bound;
        result.gap = bound > 0 ? value / bound - 1 : 0;
        return placement_sentences(report)[2];
    };
    EXPECT_EQ(says(2, 1.6),
              "The objective is 2.00 on the profile; no layout within the caps is below 1.60, so "
              "it is at most 25.0 % above the best.");
    EXPECT_TRUE(has(says(1.003, 1), "is 1.003 on")) << says(1.003, 1);
    EXPECT_TRUE(has(says(1.003, 1), "below 1.000, so it is at most 0.3 % above"));
    EXPECT_TRUE(has(says(1.00001, 1), "below 1.00000, so it is less than 0.1 % above"));
    EXPECT_TRUE(has(says(2, 2), "no layout within the caps is below that: the optimum."));
    EXPECT_TRUE(has(says(2, 0), "no lower bound is known"));
    EXPECT_TRUE(has(says(0, 0), "nothing is below that: the optimum."));
    const Document json = json_of(report);
    EXPECT_EQ(json["bound"], 0);
    EXPECT_EQ(json["gap"], 0);

    report.training[0].rows.back().load_worst_layer = 2;
    EXPECT_TRUE(has(says(2, 1.6), "no layout that is loaded no more than this one is below 1.60"));
    const std::string broken = "The load cap 1.06 is broken: 2.00 in the worst layer.";
    EXPECT_EQ(placement_sentences(report)[3], broken);
    result.notes = {"the load cap 1.06 was not kept"};
    EXPECT_FALSE(has(text_of(report), broken));
}

TEST(PlacementReport, says_who_cut_it_short) {
    Case one;
    PlacementReport report = one.report();
    one.placed.result.cut_short = true;
    EXPECT_TRUE(has(text_of(report), "cut short by the clock"));
    one.placed.interrupted = true;
    EXPECT_TRUE(has(text_of(report), "The search was interrupted: "));
    EXPECT_FALSE(has(text_of(report), "clock"));
}

TEST(PlacementReport, the_current_layout_is_what_is_compared_with) {
    Case one;
    one.task.options.current = round_robin_layout({3, 8}, 4);
    one.task.options.max_moves = 4;
    const PlacementReport report = one.report();
    const auto& rows = report.training[0].rows;
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(report.training[0].layouts[2], "current");
    EXPECT_EQ(rows[2].moved_experts, 0);
    EXPECT_LE(rows[3].moved_experts, 4);
    const std::string text = text_of(report);
    EXPECT_TRUE(has(text, "against current")) << text;
    EXPECT_TRUE(has(text, "moved")) << text;
    EXPECT_EQ(json_of(report)["baselines"]["current"]["moved_experts"], 0);
}

TEST(PlacementReport, nodes_are_shown_where_there_are_some) {
    Case one;
    one.task.input.nodes = 2;
    const std::string text = text_of(one.report());
    EXPECT_TRUE(has(text, "4 GPUs in 2 nodes of dgx-h100")) << text;
    EXPECT_TRUE(has(text, "nodes/token")) << text;
    EXPECT_TRUE(has(text, "minimising gpus+4*nodes")) << text;
    EXPECT_FALSE(has(text_of(Case().report()), "nodes/token"));
}

TEST(PlacementReport, front_and_effects_are_shown) {
    Case one;
    PlacementReport report = one.report();
    one.task.options.objective = one.placed.result.objective = parse_objective("load");
    one.task.options.load_cap = 1.1;
    one.placed.tries.emplace();
    LayoutEffect before;
    before.layout = "contiguous";
    before.system = "deepep";
    before.all_to_all = {200 * kUs, 300 * kUs, 400 * kUs};
    before.processing = {100 * kUs, 100 * kUs, 100 * kUs};
    LayoutEffect after = before;
    after.layout = "joint";
    after.all_to_all = {150 * kUs, 150 * kUs, 200 * kUs};
    after.speedup = 1.25;
    after.moe_layers = 80 * kUs;
    LayoutEffect eplb = before;
    eplb.layout = "eplb";
    eplb.moe_layers = 120 * kUs;
    one.placed.effect = PlacementEffect{4096, 2, {before, eplb, after}, {"a note"}};
    one.placed.taken = "joint";
    const std::string text = text_of(report);
    EXPECT_TRUE(has(text, "--objective load --load-cap 1.1 --time-limit 0.02")) << text;
    EXPECT_TRUE(has(text, "2 steps of 4,096 tokens")) << text;
    EXPECT_TRUE(has(text, "all-to-all -25.0 % mean and -50.0 % tail")) << text;
    EXPECT_TRUE(has(text, "1.500 times as fast as eplb")) << text;
    EXPECT_TRUE(has(text, "a note")) << text;
    const Document json = json_of(report);
    EXPECT_EQ(json["pareto"][0]["objective"], "load");
    EXPECT_EQ(json["effects"]["layouts"][2]["all_to_all_us"]["p95"], 150);
    EXPECT_EQ(json["effects"]["layouts"][2]["speedup"], 1.25);
    EXPECT_TRUE(json["effects"]["layouts"][2]["model_us"].is_null());
}

TEST(PlacementReport, gpus_without_experts_are_mentioned) {
    Case one;
    EXPECT_FALSE(has(text_of(one.report()), "hold no expert"));
    ExpertLayout& layout = one.placed.result.layout;
    auto& gpus = layout.on[1];
    gpus[0].insert(gpus[0].end(), gpus[2].begin(), gpus[2].end());
    gpus[2].clear();
    EXPECT_TRUE(has(text_of(placement_report(one.task, one.placed)),
                    "- joint: 1 of 4 GPUs hold no expert in 1 of 3 layers.\n"));
    // As many slots as GPUs: experts in order leave half of them alone.
    Case wide;
    wide.task.input.gpus = 16;
    wide.task.input.redundant = 8;
    const Document json = json_of(wide.report());
    ASSERT_EQ(json["idle"].size(), 1u);
    EXPECT_EQ(json["idle"][0], "contiguous: 8 of 16 GPUs hold no expert.");
}

TEST(PlacementReport, names_are_escaped) {
    Case one;
    one.task.input.profiles[0].name = "bad\x1b[31m\nname\xff.npy";
    const PlacementReport report = one.report();
    const std::string text = text_of(report);
    EXPECT_FALSE(has(text, "\x1b"));
    EXPECT_FALSE(has(text, "\nname"));
    EXPECT_TRUE(Document::accept(json_text(placement_answer(report))));
}

template <class Noun>
Held<Noun> held(Noun noun, const std::string& name, Overrides settings = {}) {
    return std::make_shared<const Loaded<Noun>>(
        Loaded<Noun>{std::move(noun), name, std::move(settings)});
}

Held<NamedRouting> held_routing(const Profile& profile, const std::string& name) {
    Routing routing{profile.experts, profile.top_k, profile.layers, profile.tokens, {}, {}};
    routing.chosen = std::vector<std::uint16_t>(profile.chosen);
    return held(NamedRouting{std::move(routing)}, name);
}

TEST(Place, takes_what_is_at_hand_for_names) {
    const Profile first = topic_profile({}, 1), second = topic_profile({}, 2);
    const Machine machine = with_gpus(load_machine("dgx-h800", {"link.latency=1us"}), 4);
    const Said said{{"profile", {}, {held_routing(first, "mine")}},
                    {"evaluate", {}, {held_routing(second, "other")}},
                    {"machine", {}, {held(machine, "dgx-h800", {"link.latency=1us"})}},
                    {"model", {}, {held(load_model("mixtral-8x7b"), "mixtral-8x7b")}},
                    {"current", {}, {held(round_robin_layout({3, 8}, 4), "now")}},
                    {"system", {}, {held(load_system("ideal"), "ideal")}},
                    {"time_limit", {"0.02"}}};
    const Document json = Document::parse(document_of("place", said).dump(2));
    EXPECT_EQ(json["gpus"], 4) << "as the machine has";
    EXPECT_EQ(json["machine"], "dgx-h800");
    EXPECT_EQ(json["set"], Document({"link.latency=1us"}));
    EXPECT_EQ(json["layouts"][0]["profile"], "mine");
    EXPECT_EQ(json["evaluation"]["gpus_per_token"], found_in(json, true)["gpus_per_token"]);
    EXPECT_EQ(json["baselines"]["current"]["moved_experts"], 0);
    EXPECT_EQ(json["effects"]["decided_by"], "ideal");
    Said odd = said;
    odd[4] = {"current", {}, {held(round_robin_layout({3, 8}, 2), "now")}};
    EXPECT_THROW(document_of("place", odd), InputError);
}

TEST(Place, a_routing_at_hand_is_what_its_file_is) {
    const Profile profile = topic_profile({}, 1);
    const Said said{{"files", {}, {held_routing(profile, "mine")}}, {"gpus", {"4"}}};
    const Document json = Document::parse(document_of("profile", said).dump(2));
    EXPECT_EQ(json["profiles"][0]["name"], "mine");
    for (std::size_t layer = 0; layer < 3; ++layer)
        EXPECT_EQ(json["layers"][layer]["counts"],
                  Document(std::vector<double>(
                      profile.counts.begin() + static_cast<int>(layer) * 8,
                      profile.counts.begin() + static_cast<int>(layer) * 8 + 8)));
}

}  // namespace
}  // namespace moehub::placement_report_test
