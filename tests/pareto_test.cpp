// Which layouts are worth a choice, and which others beat.
#include "hidden_topics.hpp"

#include <moehub/error.hpp>
#include <moehub/place.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::pareto_test {
namespace {

ParetoPoint point(double load, double gpus, double transitions, double pair) {
    ParetoPoint made;
    made.evaluation.load_max_over_mean = load;
    made.evaluation.gpus_per_token = gpus;
    made.evaluation.off_gpu_transitions = transitions;
    made.evaluation.heaviest_pair = pair;
    return made;
}

std::vector<double> loads_of(const std::vector<ParetoPoint>& points) {
    std::vector<double> loads;
    for (const ParetoPoint& one : points) loads.push_back(one.evaluation.load_max_over_mean);
    return loads;
}

TEST(Pareto, leaves_out_what_another_beats) {
    const std::vector<ParetoPoint> points{point(1.0, 4.0, 0.8, 1.1), point(1.1, 3.0, 0.8, 1.2),
                                          point(1.2, 3.0, 0.8, 1.2), point(1.3, 3.5, 0.5, 1.5)};
    EXPECT_EQ(loads_of(pareto_front(points)), (std::vector<double>{1.0, 1.1, 1.3}));
}

TEST(Pareto, equals_stand_once_and_the_first) {
    std::vector<ParetoPoint> points{point(1, 2, 3, 4), point(1, 2, 3, 4)};
    points[0].load_cap = 1.5;
    const auto front = pareto_front(points);
    ASSERT_EQ(front.size(), 1u);
    EXPECT_EQ(front[0].load_cap, 1.5);
    EXPECT_TRUE(pareto_front({}).empty());
}

TEST(Pareto, nodes_count) {
    auto near = point(1.1, 3, 0.5, 1), far = point(1.0, 3, 0.5, 1);
    near.evaluation.nodes_per_token = 1.2;
    far.evaluation.nodes_per_token = 1.9;
    EXPECT_EQ(pareto_front({near, far}).size(), 2u);
}

bool no_worse(const Evaluation& a, const Evaluation& b) {
    return a.load_max_over_mean <= b.load_max_over_mean && a.gpus_per_token <= b.gpus_per_token &&
           a.off_gpu_transitions <= b.off_gpu_transitions && a.heaviest_pair <= b.heaviest_pair;
}

RC_GTEST_PROP(Pareto, the_front_is_what_the_definition_says, ()) {
    const int count = *rc::gen::inRange(1, 30);
    std::vector<ParetoPoint> points;
    for (int i = 0; i < count; ++i) {
        const auto cost = [] { return static_cast<double>(*rc::gen::inRange(0, 4)); };
        points.push_back(point(cost(), cost(), cost(), cost()));
    }
    const auto front = pareto_front(points);
    for (std::size_t i = 0; i < front.size(); ++i)
        for (std::size_t j = 0; j < front.size(); ++j)
            RC_ASSERT(i == j || !no_worse(front[i].evaluation, front[j].evaluation));
    for (const ParetoPoint& one : points)
        RC_ASSERT(std::any_of(front.begin(), front.end(), [&](const ParetoPoint& kept) {
            return no_worse(kept.evaluation, one.evaluation);
        }));
}

TEST(Pareto, tries_share_the_time_and_leave_out_what_was_asked) {
    PlaceInput input{.profiles = {topic_profile({}, 1)}, .gpus = 4};
    PlaceOptions options;
    options.time_limit = 5;
    const auto tries = pareto_tries(input, options);
    double seconds = 0;
    bool loads = false;
    for (const ParetoPoint& one : tries) {
        seconds += one.time_limit;
        loads = loads || to_string(one.objective) == "load";
        EXPECT_FALSE(to_string(one.objective) == "gpus" && one.load_cap == options.load_cap);
        EXPECT_GT(one.time_limit, 0);
    }
    EXPECT_TRUE(loads);
    EXPECT_LE(seconds, 5);
    EXPECT_GT(seconds, 4.9);
    options.objective = parse_objective("activated");
    EXPECT_EQ(pareto_tries(input, options).size(), tries.size() + 1);
}

TEST(Pareto, transitions_are_not_tried_in_one_layer) {
    const PlaceInput input{.profiles = {topic_profile({.layers = 1}, 1)}, .gpus = 4};
    for (const ParetoPoint& one : pareto_tries(input, {})) {
        EXPECT_EQ(one.objective.transitions, 0);
        EXPECT_EQ(one.objective.pair, 0);
    }
}

TEST(Pareto, counts_are_refused) {
    PlaceInput input{.profiles = {topic_profile({}, 1)}, .gpus = 4};
    Profile& profile = input.profiles.front();
    profile.tokens = 0;
    profile.top_k = 0;
    profile.chosen.clear();
    EXPECT_THROW(pareto_tries(input, {}), InputError);
    EXPECT_THROW(place_pareto(input, {}, {}), InputError);
}

TEST(Pareto, layouts_are_judged_by_other_tokens) {
    const PlaceInput input{.profiles = {topic_profile({}, 1)}, .gpus = 4};
    const std::vector<Profile> judges{topic_profile({}, 2), topic_profile({}, 3)};
    PlaceOptions options;
    options.time_limit = 0.05;
    options.load_cap = 1.3;
    double last = 0;
    options.progress = [&last](double share, double) { last = share; };
    const auto own = place_pareto(input, options, {});
    EXPECT_GT(last, 0.5);
    EXPECT_LE(last, 1);
    const auto judged = place_pareto(input, options, judges);
    ASSERT_EQ(own.size(), judged.size());
    ASSERT_EQ(own.size(), pareto_tries(input, options).size());
    bool differ = false;
    for (std::size_t i = 0; i < own.size(); ++i) {
        EXPECT_GE(own[i].evaluation.gpus_per_token, 1);
        differ = differ ||
                 own[i].evaluation.load_max_over_mean != judged[i].evaluation.load_max_over_mean;
    }
    EXPECT_TRUE(differ);
}

TEST(Pareto, ends_when_asked_to) {
    const PlaceInput input{.profiles = {topic_profile({}, 1)}, .gpus = 4};
    std::stop_source source;
    source.request_stop();
    PlaceOptions options;
    options.stop = source.get_token();
    EXPECT_TRUE(place_pareto(input, options, {}).empty());
}

TEST(Pareto, flags_say_how_to_get_there) {
    EXPECT_EQ(flags_of({"joint", parse_objective("gpus+2*transitions"), 1.1, 0.25, {}}),
              "--objective gpus+2*transitions --load-cap 1.1 --time-limit 0.25");
    EXPECT_EQ(flags_of({"moetuner", parse_objective("load"), 0, 2, {}}),
              "--method moetuner --objective load --load-cap 0 --time-limit 2");
}

TEST(Pareto, the_mean_is_weighted) {
    Evaluation a, b;
    a.gpus_per_token = 2;
    b.gpus_per_token = 4;
    a.load_worst_layer = 1.5;
    b.load_worst_layer = 1.2;
    const Evaluation mean = mean_evaluation({a, b}, {3, 1});
    EXPECT_DOUBLE_EQ(mean.gpus_per_token, 2.5);
    EXPECT_DOUBLE_EQ(mean.load_worst_layer, 1.5);
}

}  // namespace
}  // namespace moehub::pareto_test
