// Does evaluate() say what its definitions say? By hand on a few tokens, and against a second,
// plainer count on random layouts; and are objectives read and written the same?
#include "error_of.hpp"
#include "place_cases.hpp"

#include <moehub/error.hpp>

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace moehub::place_evaluate_test {
namespace {

constexpr std::uint16_t kNone = Profile::kNobody;

/// Two layers, four experts, top-2; experts {0, 1} are on GPU 0 and {2, 3} on GPU 1 below.
Profile four_tokens() {
    Profile profile = empty_profile("four", {2, 4, 2, 4});
    profile.chosen = {0, 1, 0, 2, 0, kNone, kNone, kNone,  // layer 0
                      0, 1, 1, 3, 3, 2,     0,     kNone};
    count_choices(profile);
    return profile;
}

/// One batch's awake slots, and transitions between GPUs.
struct Plain {
    const Profile& profile;
    const ExpertLayout& layout;

    std::vector<int> gpus_of(int layer, int expert) const {
        std::vector<int> gpus;
        const auto& on = layout.on[static_cast<std::size_t>(layer)];
        for (std::size_t gpu = 0; gpu < on.size(); ++gpu)
            for (const int held : on[gpu])
                if (held == expert) gpus.push_back(static_cast<int>(gpu));
        return gpus;
    }
    std::size_t copy(int layer, std::int64_t token, int expert) const {
        return static_cast<std::size_t>(token) % gpus_of(layer, expert).size();
    }
    std::vector<int> experts(int layer, std::int64_t token) const {
        std::vector<int> chosen;
        for (const std::uint16_t expert : profile.chosen_by(layer, token))
            if (expert != kNone) chosen.push_back(expert);
        return chosen;
    }
    int gpu(int layer, std::int64_t token, int expert) const {
        return gpus_of(layer, expert)[copy(layer, token, expert)];
    }
    double distinct(int gpus_per_domain) const {
        double sum = 0;
        double count = 0;
        for (int layer = 0; layer < profile.layers; ++layer)
            for (std::int64_t token = 0; token < profile.tokens; ++token) {
                std::set<int> domains;
                for (const int expert : experts(layer, token))
                    domains.insert(gpu(layer, token, expert) / gpus_per_domain);
                sum += static_cast<double>(domains.size());
                count += domains.empty() ? 0 : 1;
            }
        return sum / count;
    }
    std::map<std::pair<int, int>, double> transitions(int first, int last) const {
        std::map<std::pair<int, int>, double> moves;
        for (int layer = first; layer < last; ++layer)
            for (std::int64_t token = 0; token < profile.tokens; ++token)
                for (const int from : experts(layer, token))
                    for (const int to : experts(layer + 1, token))
                        moves[{gpu(layer, token, from), gpu(layer + 1, token, to)}] += 1;
        return moves;
    }
    double off(int gpus_per_domain) const {
        double all = 0;
        double off = 0;
        for (const auto& [pair, count] : transitions(0, profile.layers - 1)) {
            all += count;
            if (pair.first / gpus_per_domain != pair.second / gpus_per_domain) off += count;
        }
        return off / all;
    }
    double heaviest_pair() const {
        double all = 0;
        std::map<std::pair<int, int>, double> both;
        for (const auto& [pair, count] : transitions(0, profile.layers - 1)) {
            all += count;
            if (pair.first != pair.second) both[std::minmax(pair.first, pair.second)] += count;
        }
        double most = 0;
        for (const auto& [pair, count] : both) most = std::max(most, count);
        return most / (2 * all / (layout.gpus * layout.gpus));
    }
    double heaviest_pair_by_layer() const {
        double sum = 0;
        for (int layer = 0; layer + 1 < profile.layers; ++layer) {
            double all = 0;
            double most = 0;
            for (const auto& [pair, count] : transitions(layer, layer + 1)) {
                all += count;
                if (pair.first != pair.second) most = std::max(most, count);
            }
            sum += most / all * layout.gpus * layout.gpus;
        }
        return sum / (profile.layers - 1);
    }
    double activated(std::int64_t batch) const {
        double sum = 0;
        double count = 0;
        for (int layer = 0; layer < profile.layers; ++layer)
            for (std::int64_t begin = 0; begin + batch <= profile.tokens; begin += batch) {
                std::set<std::pair<int, std::size_t>> awake;
                for (std::int64_t token = begin; token < begin + batch; ++token)
                    for (const int expert : experts(layer, token))
                        awake.insert({expert, copy(layer, token, expert)});
                std::vector<double> of_gpu(static_cast<std::size_t>(layout.gpus));
                for (const auto& [expert, number] : awake)
                    of_gpu[static_cast<std::size_t>(gpus_of(layer, expert)[number])] += 1;
                sum += *std::max_element(of_gpu.begin(), of_gpu.end()) * layout.gpus /
                       static_cast<double>(awake.size());
                count += 1;
            }
        return sum / count;
    }
};

TEST(Evaluate, four_tokens_by_hand) {
    ExpertLayout current = contiguous_layout({2, 4}, 2);
    std::swap(current.on[1][0], current.on[1][1]);
    const Evaluation seen = evaluate(four_tokens(), contiguous_layout({2, 4}, 2),
                                     {.nodes = 1, .batch = 2, .current = &current});
    // Layer 0: rows 4 and 1; layer 1: 4 and 3.
    EXPECT_DOUBLE_EQ(seen.load_max_over_mean, (4 / 2.5 + 4 / 3.5) / 2);
    EXPECT_DOUBLE_EQ(seen.load_worst_layer, 4 / 2.5);
    // 1, 2, 1 and nothing; 1, 2, 1, 1.
    EXPECT_DOUBLE_EQ(seen.gpus_per_token, 9.0 / 7);
    EXPECT_DOUBLE_EQ(seen.nodes_per_token, 1);
    // Token 0: 4 stay on GPU 0. Token 1: both ways and each stays once. Token 2: two leave GPU 0.
    EXPECT_DOUBLE_EQ(seen.off_gpu_transitions, 4.0 / 10);
    EXPECT_DOUBLE_EQ(seen.off_node_transitions, 0);
    EXPECT_DOUBLE_EQ(seen.heaviest_pair, 4 / 2.0 / 10 * 4);
    EXPECT_DOUBLE_EQ(seen.heaviest_pair_by_layer, 3.0 / 10 * 4);
    // Awake in batches of two tokens: 2 and 1, 1 and 0; 2 and 1, 1 and 2.
    EXPECT_DOUBLE_EQ(seen.activated_max_over_mean, (2 / 1.5 + 2 + 2 / 1.5 + 2 / 1.5) / 4);
    EXPECT_EQ(seen.moved_experts, 4);
}

TEST(Evaluate, copies_take_tokens_in_turn) {
    ExpertLayout layout = empty_layout({2, 4}, 2);
    layout.on = {{{0, 1, 2}, {3, 0, 2}}, {{0, 1, 1}, {2, 3, 3}}};
    const Evaluation seen = evaluate(four_tokens(), layout);
    // Expert 0 of layer 0: tokens 0 and 2 on GPU 0, token 1 on GPU 1, where expert 2 is then.
    EXPECT_DOUBLE_EQ(seen.gpus_per_token, (1 + 1 + 1 + 1 + 2 + 1 + 1) / 7.0);
    // Loads share evenly whatever the tokens' numbers: 1.5 + 1 + 0.5 and 1.5 + 0.5.
    EXPECT_DOUBLE_EQ(seen.load_worst_layer, 3 / 2.5);
    EXPECT_DOUBLE_EQ(seen.load_max_over_mean, (3 / 2.5 + 4 / 3.5) / 2);
}

TEST(Evaluate, agrees_with_a_plain_count) {
    Rng rng(5);
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const int redundant = seed % 3 == 0 ? 4 : 0;
        const Profile profile = random_profile({3, 8, 1 + static_cast<int>(seed % 4), 50}, seed);
        const ExpertLayout layout = random_layout(profile, 4, redundant, rng);
        const Evaluation seen = evaluate(profile, layout, {.nodes = 2, .batch = 16});
        const Plain plain{profile, layout};
        EXPECT_NEAR(seen.load_worst_layer, worst_load(profile.counts, layout), 1e-12);
        EXPECT_NEAR(seen.gpus_per_token, plain.distinct(1), 1e-12);
        EXPECT_NEAR(seen.nodes_per_token, plain.distinct(2), 1e-12);
        EXPECT_NEAR(seen.off_gpu_transitions, plain.off(1), 1e-12);
        EXPECT_NEAR(seen.off_node_transitions, plain.off(2), 1e-12);
        EXPECT_NEAR(seen.heaviest_pair, plain.heaviest_pair(), 1e-12);
        EXPECT_NEAR(seen.heaviest_pair_by_layer, plain.heaviest_pair_by_layer(), 1e-12);
        EXPECT_NEAR(seen.activated_max_over_mean, plain.activated(16), 1e-12);
    }
}

TEST(Evaluate, counts_alone_have_a_load_and_nothing_else) {
    const Profile profile = random_profile({3, 8, 2, 50}, 1);
    const ExpertLayout layout = round_robin_layout({3, 8}, 4);
    const Evaluation seen = evaluate(counts_only(profile), layout, {.nodes = 2});
    EXPECT_EQ(seen.load_max_over_mean, evaluate(profile, layout).load_max_over_mean);
    EXPECT_GT(seen.load_max_over_mean, 1);
    EXPECT_EQ(seen.gpus_per_token, 0);
    EXPECT_EQ(seen.off_node_transitions, 0);
    EXPECT_EQ(seen.activated_max_over_mean, 0);
}

TEST(Evaluate, one_gpu_and_one_layer_and_nobody) {
    const Profile profile = random_profile({1, 8, 3, 50}, 2);
    const Evaluation alone = evaluate(profile, contiguous_layout({1, 8}, 1));
    EXPECT_EQ(alone.load_max_over_mean, 1);
    EXPECT_EQ(alone.gpus_per_token, 1);
    EXPECT_EQ(alone.activated_max_over_mean, 1);
    EXPECT_EQ(alone.off_gpu_transitions, 0);
    EXPECT_EQ(alone.heaviest_pair, 0);
    Profile nobody = profile;
    std::fill(nobody.chosen.begin(), nobody.chosen.end(), kNone);
    count_choices(nobody);
    const Evaluation none = evaluate(nobody, contiguous_layout({1, 8}, 2));
    EXPECT_EQ(none.load_max_over_mean, 1);
    EXPECT_EQ(none.gpus_per_token, 0);
    EXPECT_EQ(none.activated_max_over_mean, 1);
}

TEST(Evaluate, a_batch_longer_than_the_profile_is_the_profile) {
    const Profile profile = random_profile({2, 8, 2, 50}, 3);
    const ExpertLayout layout = contiguous_layout({2, 8}, 4);
    EXPECT_EQ(evaluate(profile, layout, {.batch = 50}).activated_max_over_mean,
              evaluate(profile, layout, {.batch = 1000000000}).activated_max_over_mean);
}

TEST(Evaluate, says_what_does_not_fit) {
    const Profile profile = random_profile({2, 8, 2, 10}, 4);
    EXPECT_EQ(error_of([&] {
                  evaluate(profile, contiguous_layout({3, 8}, 2));
              }),
              "random: found 2 layers of 8 experts, allowed: the layout's 3 of 8");
    EXPECT_EQ(error_of([&] {
                  evaluate(profile, contiguous_layout({2, 8}, 4), {.nodes = 3});
              }),
              "nodes: found 3, allowed: a divisor of 4 GPUs");
}

TEST(Objective, is_written_as_it_was_read) {
    for (const std::string text :
         {"gpus", "gpus+4*transitions", "load+gpus+nodes+transitions+node-transitions+pair",
          "0.25*activated+2*moved", "1000*load"})
        EXPECT_EQ(to_string(parse_objective(text)), text);
    EXPECT_EQ(parse_objective(" 1e+2 * gpus + 1e-1*pair "), (Objective{.gpus = 100, .pair = 0.1}));
}

TEST(Objective, says_what_is_allowed) {
    for (const std::string text : {"", "+", "gpus+", "gpu", "0*gpus", "-1*gpus", "nan*gpus",
                                   "inf*gpus", "1e7*gpus", "2gpus", "2*", "gpus*2"})
        EXPECT_NE(error_of([&] { parse_objective(text); }).find("allowed: "), std::string::npos)
            << text;
    EXPECT_EQ(error_of([] { parse_objective("gpus+2*gpus"); }),
              "--objective: found gpus twice, allowed: once");
}

TEST(Objective, weighs_the_parts) {
    const Evaluation seen{.load_max_over_mean = 2,
                          .load_worst_layer = 1000,
                          .gpus_per_token = 3,
                          .nodes_per_token = 5,
                          .off_gpu_transitions = 7,
                          .off_node_transitions = 11,
                          .heaviest_pair = 13,
                          .heaviest_pair_by_layer = 1000,
                          .activated_max_over_mean = 17,
                          .moved_experts = 19};
    EXPECT_EQ(value_of({1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7}, seen, 4),
              2 + 30 + 500 + 7e3 + 11e4 + 13e5 + 17e6 + 19e7 / 4);
}

}  // namespace
}  // namespace moehub::place_evaluate_test
