#include "base/json.hpp"
#include "report/profile_report.hpp"

#include <algorithm>

namespace moehub {
namespace {

Json or_null(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json load_json(const LoadSummary& load) {
    return {{"rows", load.rows},
            {"tokens", load.tokens},
            {"mean", load.mean},
            {"largest", load.largest},
            {"busiest", load.busiest},
            {"largest_over_mean", load.largest_over_mean},
            {"busiest_share", load.busiest_share},
            {"variation", load.variation},
            {"gini", load.gini},
            {"effective_experts", load.effective_experts},
            {"never_chosen", load.never_chosen},
            {"largest_over_gpu", load.largest_over_gpu},
            {"gpu_bound", load.gpu_bound},
            {"gpu_contiguous", load.gpu_contiguous}};
}

Json coactivation_json(const CoactivationSummary& pairs) {
    Json json = {{"pairs", pairs.pairs},
                 {"heaviest_tenth", pairs.concentration.heaviest_tenth},
                 {"heaviest_tenth_by_chance", pairs.concentration.by_chance},
                 {"top_share", pairs.top_share},
                 {"top_share_by_chance", pairs.top_share_by_chance},
                 {"top", Json::array()}};
    for (const CoactivePair& pair : pairs.top)
        json["top"].push_back({{"first", pair.first},
                               {"second", pair.second},
                               {"together", pair.together},
                               {"lift", pair.lift}});
    return json;
}

Json transition_json(const TransitionSummary& next) {
    return {{"transitions", next.transitions},
            {"heaviest_tenth", next.concentration.heaviest_tenth},
            {"heaviest_tenth_by_chance", next.concentration.by_chance},
            {"information_bits", next.information},
            {"information_bits_by_chance", next.information_by_chance},
            {"off_gpu_contiguous", next.off_gpu}};
}

Json halves_json(const LoadDifference& halves) {
    return {{"total_variation", halves.total_variation},
            {"by_chance", halves.by_chance},
            {"correlation", or_null(halves.correlation)}};
}

Json profile_of(const ProfileSummary& summary) {
    Json json;
    json["name"] = summary.name;
    json["tokens"] = summary.tokens;
    json["steps"] = summary.steps;
    json["experts"] = summary.experts;
    json["top_k"] = summary.top_k;
    json["gpus"] = summary.gpus;
    json["pair_tokens"] = summary.pair_tokens;
    json["notes"] = summary.notes;
    json["layers"] = Json::array();
    auto counts = summary.counts.begin();
    for (const LayerSummary& layer : summary.layers) {
        Json& one = json["layers"].emplace_back();
        one["layer"] = layer.number;
        one["load"] = load_json(layer.load);
        one["together"] =
            layer.coactivation ? coactivation_json(*layer.coactivation) : Json(nullptr);
        one["next"] = layer.next ? transition_json(*layer.next) : Json(nullptr);
        one["halves"] = layer.halves ? halves_json(*layer.halves) : Json(nullptr);
        one["counts"] = std::vector<double>(counts, counts + summary.experts);
        counts += summary.experts;
    }
    return json;
}

}  // namespace

Json profile_json(const ProfileReport& report) {
    Json json;
    json["profiles"] = Json::array();
    for (const ProfileSummary& summary : report.profiles)
        json["profiles"].push_back(profile_of(summary));
    json["differences"] = Json::array();
    for (const ProfileDifference& one : report.differences)
        json["differences"].push_back({{"first", one.first},
                                       {"second", one.second},
                                       {"total_variation", one.total_variation},
                                       {"by_chance", one.by_chance},
                                       {"worst", one.worst},
                                       {"worst_layer", one.worst_layer},
                                       {"correlation", or_null(one.correlation)}});
    json["meaning"] = profile_sentences(report);
    return json;
}

}  // namespace moehub
