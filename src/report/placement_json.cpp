#include "base/json.hpp"
#include "report/placement_report.hpp"

#include <array>
#include <utility>

namespace moehub {
namespace {

/// A figure of an Evaluation and what must be known for it.
struct Figure {
    const char* key;
    double Evaluation::*value;
    bool KnownParts::*needs;  ///< null: nothing
};
constexpr std::array<Figure, 9> kFigures{{
    {"load_max_over_mean", &Evaluation::load_max_over_mean, nullptr},
    {"load_worst_layer", &Evaluation::load_worst_layer, nullptr},
    {"gpus_per_token", &Evaluation::gpus_per_token, &KnownParts::tokens},
    {"nodes_per_token", &Evaluation::nodes_per_token, &KnownParts::tokens},
    {"off_gpu_transitions", &Evaluation::off_gpu_transitions, &KnownParts::transitions},
    {"off_node_transitions", &Evaluation::off_node_transitions, &KnownParts::transitions},
    {"heaviest_pair", &Evaluation::heaviest_pair, &KnownParts::transitions},
    {"heaviest_pair_by_layer", &Evaluation::heaviest_pair_by_layer, &KnownParts::transitions},
    {"activated_max_over_mean", &Evaluation::activated_max_over_mean, &KnownParts::tokens},
}};

void add_figures(Json& json, const Evaluation& evaluation, const KnownParts& known) {
    for (const Figure& one : kFigures)
        json[one.key] =
            !one.needs || known.*one.needs ? Json(evaluation.*one.value) : Json(nullptr);
    json["moved_experts"] = known.moved ? Json(evaluation.moved_experts) : Json(nullptr);
}

Json figures_json(const Evaluation& evaluation, const KnownParts& known) {
    Json json;
    add_figures(json, evaluation, known);
    return json;
}

/// All rows but the last, which is the layout found.
Json baselines_json(const PlacementTable& table) {
    Json json = Json::object();
    for (std::size_t i = 0; i + 1 < table.rows.size(); ++i)
        json[table.rows[i].layout] = figures_json(table.rows[i].evaluation, table.known);
    return json;
}

Json tables_json(const std::vector<PlacementTable>& tables) {
    Json list = Json::array();
    for (const PlacementTable& table : tables) {
        Json& json = list.emplace_back();
        json["profile"] = table.profile;
        json["weight"] = table.weight;
        json["tokens"] = table.tokens > 0 ? Json(table.tokens) : Json(nullptr);
        add_figures(json, table.found(), table.known);
        json["baselines"] = baselines_json(table);
    }
    return list;
}

/// Lower bounds of the parts, and how far above them the layout is on the profiles.
void add_bounds(Json& json, const PlacementReport& report) {
    const PlaceResult& result = report.result;
    const Evaluation found = mean_table(report.training).found();
    const bool bound = result.bound > 0 || result.value == 0;  // nothing is below 0
    json["value"] = result.value;
    json["bound"] = bound ? Json(result.bound) : Json(nullptr);
    json["gap"] = bound ? Json(result.gap) : Json(nullptr);
    Json bounds, gaps;
    for (const Figure& one : kFigures) {
        const double least = result.bounds.*one.value;
        const bool known = least > 0;
        bounds[one.key] = known ? Json(least) : Json(nullptr);
        gaps[one.key] = known ? Json(found.*one.value / least - 1) : Json(nullptr);
    }
    json["bounds"] = bounds;
    json["gaps"] = gaps;
}

Json pareto_json(const PlacementReport& report) {
    if (!report.pareto) return nullptr;
    Json list = Json::array();
    const KnownParts known = mean_table(report.judged()).known;
    for (const ParetoPoint& point : *report.pareto) {
        Json& json = list.emplace_back();
        json["options"] = flags_of(point);
        json["method"] = point.method;
        json["objective"] = to_string(point.objective);
        json["load_cap"] = point.load_cap;
        json["time_limit_seconds"] = point.time_limit;
        json["evaluation"] = figures_json(point.evaluation, known);
    }
    return list;
}

Json spread_json(const TimeSpread& spread) {
    return {
        {"mean", to_us(spread.mean)}, {"p95", to_us(spread.p95)}, {"worst", to_us(spread.worst)}};
}

Json effects_json(const PlacementReport& report) {
    if (!report.effect) return nullptr;
    Json json;
    json["step_tokens"] = report.effect->step_tokens;
    json["steps"] = report.effect->steps;
    json["layouts"] = Json::array();
    for (const LayoutEffect& one : report.effect->layouts) {
        Json& row = json["layouts"].emplace_back();
        row["system"] = one.system;
        row["layout"] = one.layout;
        row["layer_us"] = spread_json(one.layer);
        row["all_to_all_us"] = spread_json(one.all_to_all);
        row["fused"] = one.fused;
        row["processing_us"] = spread_json(one.processing);
        row["moe_layers_us"] = to_us(one.moe_layers);
        row["model_us"] = one.model > 0 ? Json(to_us(one.model)) : Json(nullptr);
        row["speedup"] = one.speedup;
        const LayoutEffect* const eplb = eplb_of(*report.effect, one.system);
        row["speedup_over_eplb"] = eplb ? Json(faster(one, *eplb)) : Json(nullptr);
    }
    json["taken"] = report.taken;
    json["decided_by"] = report.effect->layouts.front().system;
    json["notes"] = report.effect->notes;
    return json;
}

void add_question(Json& json, const PlacementReport& report) {
    json["method"] = report.method;
    json["objective"] = to_string(report.result.objective);
    json["load_cap"] = report.load_cap;
    json["load_blocks"] = report.load_blocks;
    json["worst_profile"] = report.worst_profile;
    json["seed"] = report.seed;
    json["machine"] = report.machine;
    json["model"] = report.model ? Json(*report.model) : Json(nullptr);
    json["layers"] = report.layers;
    json["experts"] = report.experts;
    json["top_k"] = report.top_k > 0 ? Json(report.top_k) : Json(nullptr);
    json["gpus"] = report.gpus;
    json["nodes"] = report.nodes;
    json["replicas"] = report.replicas;
    json["slots_per_gpu"] = report.slots_per_gpu > 0 ? Json(report.slots_per_gpu) : Json(nullptr);
}

}  // namespace

Json placement_json(const PlacementReport& report) {
    Json json;
    add_question(json, report);
    const PlacementTable judged = mean_table(report.judged());
    json["held_out"] = !report.held_out.empty();
    json["evaluation"] = figures_json(judged.found(), judged.known);
    json["baselines"] = baselines_json(judged);
    json["evaluated"] = tables_json(report.held_out);
    json["training"] = tables_json(report.training);
    add_bounds(json, report);
    json["search_seconds"] = report.result.seconds;
    json["cut_short"] = report.result.cut_short;
    json["notes"] = report.result.notes;
    json["traffic_model"] = traffic_model();
    json["pair_traffic"] = report.pairs.empty() ? Json(nullptr) : Json(report.pairs);
    json["pareto"] = pareto_json(report);
    json["effects"] = effects_json(report);
    json["file"] = report.file.path.empty() ? Json(nullptr) : Json(report.file.path);
    json["format"] = to_string(report.file.format);
    json["server"] = report.file.path.empty()
                         ? Json(nullptr)
                         : Json(server_command(report.result.layout, report.file.format,
                                               report.file.path, report.nodes));
    return json;
}

}  // namespace moehub
