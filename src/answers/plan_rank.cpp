// How predicted and published orders of training runs agree.
#include "answers/plan_answers.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kMostPairs = 10;  ///< pairs of a group that people see

Json source_of(const RankGroup& group) {
    return or_null(group.source);
}
std::string source_words(const RankGroup& group) {
    return group.source.empty() ? "all sources" : group.source;
}

Table groups_table(const std::vector<RankGroup>& groups) {
    using Group = RankGroup;
    return table_of<Group>(
        "groups", "",
        {{{"model", "model"}, &Group::model},
         {{"source"}, source_words},
         {hidden("source"), source_of},
         {{"runs", "runs", kWhole}, [](const Group& one) { return one.runs.size(); }},
         {{"rank correlation", "correlation", fixed(3)}, &Group::correlation},
         {hidden("pairs"), &Group::pairs},
         {hidden("in_order"), [](const Group& one) { return one.pairs - one.swapped.size(); }},
         {{"pairs in order"},
          [](const Group& one) {
              return fmt::format("{} of {}", one.pairs - one.swapped.size(), one.pairs);
          }}},
        groups);
}

/// Each run once, though it may be one of a source's and one of all sources' group.
std::vector<RankedRun> runs_of(const std::vector<RankGroup>& groups) {
    std::vector<RankedRun> runs;
    std::set<int> known;
    for (const RankGroup& group : groups)
        for (const RankedRun& one : group.runs)
            if (known.insert(one.run.line).second) runs.push_back(one);
    return runs;
}

Table runs_table(const std::vector<RankedRun>& runs) {
    using Run = RankedRun;
    return table_of<Run>(
        "runs", "Every run, best published first",
        {{{"model", "model", kOnce}, [](const Run& one) { return one.run.model; }},
         {{"source", "source", kOnce, 2}, [](const Run& one) { return one.run.source; }},
         {{"line", "line", kWhole}, [](const Run& one) { return one.run.line; }},
         {{"published", "published_mfu", kPercent}, &Run::published},
         {{"predicted", "predicted_mfu", kPercent}, &Run::predicted},
         {{"GPUs", "gpus", kWhole, 1}, [](const Run& one) { return one.run.gpus; }},
         {{"machine", "machine", kText, 3}, [](const Run& one) { return one.run.machine; }},
         {{"parallel layout", "layout", kProse}, &Run::layout},
         {hidden("fits"), &Run::fits},
         {hidden("note"), [](const Run& one) { return one.run.note; }}},
        runs);
}

/// Two runs of a group that are predicted the other way round.
struct SwappedPair {
    const RankGroup* group;
    const RankedRun* better;  ///< run published as the faster one
    const RankedRun* worse;
};

std::vector<SwappedPair> pairs_of(const std::vector<RankGroup>& groups, std::size_t most) {
    std::vector<SwappedPair> pairs;
    for (const RankGroup& group : groups)
        for (std::size_t i = 0; i < std::min(most, group.swapped.size()); ++i)
            pairs.push_back({&group, &group.runs[group.swapped[i].first],
                             &group.runs[group.swapped[i].second]});
    return pairs;
}

Table swapped_table(std::string key, std::string caption, const std::vector<SwappedPair>& pairs) {
    using Pair = SwappedPair;
    const auto words = [](const RankedRun* Pair::*run) {
        return [run](const Pair& one) {
            const RankedRun& which = *(one.*run);
            return fmt::format("line {}, {} × {}, {}", which.run.line, which.run.gpus,
                               which.run.machine, which.layout);
        };
    };
    const auto of = [](const RankedRun* Pair::*run, double RankedRun::*member) {
        return [run, member](const Pair& one) { return one.*run->*member; };
    };
    const auto line = [](const RankedRun* Pair::*run) {
        return [run](const Pair& one) { return (one.*run)->run.line; };
    };
    return table_of<Pair>(
        std::move(key), std::move(caption),
        {{{"model", "model", kOnce, 1}, [](const Pair& one) { return one.group->model; }},
         {hidden("source"), [](const Pair& one) { return source_of(*one.group); }},
         {{"source", "", kOnce, 2}, [](const Pair& one) { return source_words(*one.group); }},
         {hidden("better_line"), line(&Pair::better)},
         {{"published better", "", kProse}, words(&Pair::better)},
         {{"published", "", kPercent}, of(&Pair::better, &RankedRun::published)},
         {{"predicted", "", kPercent}, of(&Pair::better, &RankedRun::predicted)},
         {hidden("worse_line"), line(&Pair::worse)},
         {{"than", "", kProse}, words(&Pair::worse)},
         {{"published", "", kPercent}, of(&Pair::worse, &RankedRun::published)},
         {{"predicted", "", kPercent}, of(&Pair::worse, &RankedRun::predicted)}},
        pairs);
}

/// Where predictions are what was published, and 10 % more and less.
void add_guides(LineChart& chart) {
    double least = 100, most = 0;
    for (const LineSeries& series : chart.series)
        for (const ChartPoint& point : series.points) {
            least = std::min(least, point.x);
            most = std::max(most, point.x);
        }
    for (const auto& [name, slope] :
         {std::pair("as published", 1.0), std::pair("+10 %", 1.1), std::pair("−10 %", 0.9)})
        chart.series.push_back(
            {name, {{least, slope * least, name}, {most, slope * most, name}}, true});
}

LineChart mfu_chart(const std::vector<RankedRun>& runs) {
    LineChart chart{"Published and predicted MFU",
                    {"published, %", false, false},
                    {"predicted, %", false, false},
                    {},
                    false};
    for (const RankedRun& one : runs) {
        const std::string name = fmt::format("{}, {}", one.run.model, one.run.source);
        series_named(chart.series, name)
            .points.push_back({100 * one.published, 100 * one.predicted,
                               fmt::format("line {}: {} × {}, {}", one.run.line, one.run.gpus,
                                           one.run.machine, one.layout)});
    }
    add_guides(chart);
    return chart;
}

Table left_out_table(const std::vector<RunNotRanked>& left_out) {
    return table_of<RunNotRanked>("left_out", "",
                                  {{{"left out, line", "line", kWhole}, &RunNotRanked::line},
                                   {{"why", "reason", kProse}, &RunNotRanked::why}},
                                  left_out);
}

}  // namespace

Answer ranked_answer(const RunRanking& ranking) {
    const std::vector<RankedRun> runs = runs_of(ranking.groups);
    const std::vector<SwappedPair> all = pairs_of(ranking.groups, runs.size() * runs.size());
    Answer answer{.title = "Training runs, published and predicted",
                  .lead = {"Order of published and predicted MFU"}};
    answer.main = "runs";
    answer.sections = {
        {"Groups", {}, {groups_table(ranking.groups)}},
        {"Runs", {}, {{mfu_chart(runs), Reader::page}, runs_table(runs)}},
        {"Out of order",
         {},
         {{swapped_table("swapped", "", all), Reader::program},
          swapped_table(
              "",
              fmt::format("Out of order, of each group the {} furthest apart at most", kMostPairs),
              pairs_of(ranking.groups, kMostPairs))}},
        {"Left out", {}, {left_out_table(ranking.left_out)}}};
    return answer;
}

}  // namespace moehub
