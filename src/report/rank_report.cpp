#include "report/rank_report.hpp"

#include "report/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::size_t kMostPairs = 10;  ///< that are printed of a group

using Align = Table::Align;

std::string source_of(const RankGroup& group) {
    return group.source.empty() ? "all sources" : group.source;
}

std::string summary(const RunRanking& ranking, const TextStyle& style) {
    Table table({{"model", Align::left},
                 {"source", Align::left},
                 {"runs"},
                 {"rank correlation"},
                 {"pairs in order", Align::right}});
    for (const RankGroup& group : ranking.groups)
        table.add({group.model, source_of(group), fmt::format("{}", group.runs.size()),
                   fmt::format("{:.3f}", group.correlation),
                   fmt::format("{} of {}", group.pairs - group.swapped.size(), group.pairs)});
    return table.text(style);
}

std::string run_words(const RankedRun& one) {
    return fmt::format("line {}, {} × {}, {}", one.run.line, one.run.gpus, one.run.machine,
                       one.layout);
}

/// Best published first.
std::string runs_of(const RankGroup& group, const TextStyle& style) {
    Table table({{"line"},
                 {"published"},
                 {"predicted"},
                 {"GPUs"},
                 {"machine", Align::left},
                 {"parallel layout", Align::text}});
    for (const RankedRun& one : group.runs)
        table.add({fmt::format("{}", one.run.line), percent(one.published), percent(one.predicted),
                   fmt::format("{}", one.run.gpus), one.run.machine, one.layout});
    return fmt::format("\n{}, {}\n\n", group.model, source_of(group)) + table.text(style);
}

std::string swapped_of(const RankGroup& group, const TextStyle& style) {
    Table table({{"published better", Align::text},
                 {"published"},
                 {"predicted"},
                 {"than", Align::text},
                 {"published"},
                 {"predicted"}});
    for (std::size_t i = 0; i < std::min(kMostPairs, group.swapped.size()); ++i) {
        const RankedRun& one = group.runs[group.swapped[i].first];
        const RankedRun& other = group.runs[group.swapped[i].second];
        table.add({run_words(one), percent(one.published), percent(one.predicted), run_words(other),
                   percent(other.published), percent(other.predicted)});
    }
    return table.text(style);
}

Json run_json(const RankedRun& one) {
    return {{"line", one.run.line},           {"model", one.run.model},
            {"machine", one.run.machine},     {"gpus", one.run.gpus},
            {"source", one.run.source},       {"note", one.run.note},
            {"layout", one.layout},           {"fits", one.fits},
            {"published_mfu", one.published}, {"predicted_mfu", one.predicted}};
}

Json group_json(const RankGroup& group) {
    Json json{{"model", group.model},
              {"source", group.source.empty() ? Json() : Json(group.source)},
              {"correlation", group.correlation},
              {"pairs", group.pairs}};
    json["runs"] = Json::array();
    for (const RankedRun& one : group.runs) json["runs"].push_back(run_json(one));
    json["swapped"] = Json::array();
    for (const auto& [better, worse] : group.swapped)
        json["swapped"].push_back({{"better_line", group.runs[better].run.line},
                                   {"worse_line", group.runs[worse].run.line}});
    return json;
}

}  // namespace

std::string ranking_text(const RunRanking& ranking, const TextStyle& style) {
    std::string text = "Order of published and predicted MFU\n\n" + summary(ranking, style);
    for (const RankGroup& group : ranking.groups)
        if (!group.source.empty()) text += runs_of(group, style);
    for (const RankGroup& group : ranking.groups) {
        if (group.swapped.empty()) continue;
        text += fmt::format("\n{}, {}: out of order{}\n\n", group.model, source_of(group),
                            group.swapped.size() > kMostPairs
                                ? fmt::format(" (the {} furthest apart)", kMostPairs)
                                : "");
        text += swapped_of(group, style);
    }
    if (!ranking.left_out.empty()) text += "\nLeft out\n\n";
    for (const RunNotRanked& one : ranking.left_out)
        text += fmt::format("line {}: {}\n", one.line, one.why);
    return text;
}

Json rank_json(const RunRanking& ranking) {
    Json json;
    json["groups"] = Json::array();
    for (const RankGroup& group : ranking.groups) json["groups"].push_back(group_json(group));
    json["left_out"] = Json::array();
    for (const RunNotRanked& one : ranking.left_out)
        json["left_out"].push_back({{"line", one.line}, {"reason", one.why}});
    return json;
}

}  // namespace moehub
