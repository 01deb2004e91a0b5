#include "base/json.hpp"
#include "report/reproduction.hpp"

namespace moehub {
namespace {

Json text_or_null(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

Json time_or_null(const ReproducedCell& cell, Ps time) {
    return cell.refusal.empty() ? Json(to_us(time)) : Json(nullptr);
}

Json reading_json(const Reading& one) {
    return {{"name", one.name}, {"what", one.what}, {"changes", one.changes}};
}

/// By the readings after the first, under their names; empty where there are none.
Json otherwise_json(const PublishedNumber& one, const std::vector<Reading>& readings) {
    Json json = Json::object();
    for (std::size_t i = 1; i <= one.otherwise.size(); ++i)
        json[readings[i].name] = {{"ours", one.read(i)},
                                  {"ratio", one.read(i) / one.paper},
                                  {"as_published", one.as_published(i)}};
    return json;
}

Json otherwise_json(const PublishedClaim& one, const std::vector<Reading>& readings) {
    Json json = Json::object();
    for (std::size_t i = 0; i < one.otherwise.size(); ++i)
        json[readings[i + 1].name] = {{"holds", Json(static_cast<bool>(one.otherwise[i]))}};
    return json;
}

Json number_json(const PublishedNumber& one, const Reproduction& all) {
    return {{"figure", one.figure},
            {"what", one.what},
            {"paper", one.paper},
            {"ours", one.ours},
            {"ratio", one.ratio()},
            {"geometric_mean", all.means == Means::none ? Json(nullptr) : Json(one.geometric)},
            {"as_published", one.as_published()},
            {"otherwise", otherwise_json(one, all.readings)},
            {"reason", text_or_null(one.reason)}};
}

Json claim_json(const PublishedClaim& one, const Reproduction& all) {
    return {{"figure", one.figure},
            {"what", one.what},
            {"holds", one.holds},
            {"found", one.found},
            {"otherwise", otherwise_json(one, all.readings)},
            {"reason", text_or_null(one.reason)}};
}

const char* work_name(CellWork work) {
    switch (work) {
        case CellWork::layer:
            return "layer";
        case CellWork::communication:
            return "communication";
        case CellWork::training:
            return "training";
        case CellWork::sub_layer:
            return "sub-layer";
        case CellWork::all_reduce:
            return "all-reduce";
        case CellWork::model:
            break;
    }
    return "model";
}

/// Only what a cell has beyond a row-grain layer in a model that is run forward.
void add_particulars(const ReproducedCell& one, Json& json) {
    if (one.work == CellWork::model) return;
    json["work"] = work_name(one.work);
    json["changes"] = one.changes;
    json["grain"] = one.grain == Grain::packet ? "packet" : "row";
    json["communication_us"] = time_or_null(one, one.communication);
    json["busier_way_us"] = time_or_null(one, one.busier_way);
    json["traffic_bytes"] =
        one.refusal.empty() ? Json{{"up", one.bytes_up}, {"down", one.bytes_down}} : Json(nullptr);
}

/// Of dense models, their sub-layers, and of what runs on another machine.
void add_sub_layer(const ReproducedCell& one, Json& json) {
    if (!one.machine.empty()) json["machine"] = one.machine;
    if (one.forward_time > 0) json["forward_us"] = to_us(one.forward_time);
    if (one.work != CellWork::sub_layer) return;
    json["part"] = one.part;
    json["compute_us"] = time_or_null(one, one.compute);
    json["link_use"] = one.link_use;
    json["merge"] = {{"deepest", one.merge.deepest},
                     {"spread_us", one.merge.spread_us},
                     {"longest_us", one.merge.longest_us}};
}

Json cell_json(const ReproducedCell& one) {
    Json json{{"model", one.model},
              {"gpus", one.gpus},
              {"tokens", one.tokens},
              {"routing", one.routing},
              {"system", one.system},
              {"reading", text_or_null(one.reading)},
              {"time_us", time_or_null(one, one.time)},
              {"first_gemm_us", time_or_null(one, one.first_gemm)},
              {"model_us", time_or_null(one, one.model_time)},
              {"refusal", text_or_null(one.refusal)}};
    add_particulars(one, json);
    add_sub_layer(one, json);
    return json;
}

Json table_json(const FigureTable& table) {
    Json rows = Json::array();
    for (const FigureTable::Row& row : table.rows) {
        if (row.mean) continue;
        Json json;
        for (std::size_t i = 0; i < row.labels.size(); ++i) json[table.labels[i]] = row.labels[i];
        for (std::size_t i = 0; i < row.values.size(); ++i)
            json[table.columns[i].title] = row.values[i] ? Json(*row.values[i]) : Json(nullptr);
        rows.push_back(std::move(json));
    }
    return {{"figure", table.figure}, {"title", table.title}, {"rows", rows}};
}

}  // namespace

Json reproduction_json(const Reproduction& all) {
    Json json;
    json["paper"] = all.paper;
    json["figure"] = text_or_null(all.figure);
    json["quick"] = all.quick;
    json["setup"] = all.setup;
    json["readings"] = Json::array();
    for (const Reading& one : all.readings) json["readings"].push_back(reading_json(one));
    json["numbers"] = Json::array();
    for (const PublishedNumber& one : all.numbers) json["numbers"].push_back(number_json(one, all));
    json["claims"] = Json::array();
    for (const PublishedClaim& one : all.claims) json["claims"].push_back(claim_json(one, all));
    json["tables"] = Json::array();
    for (const FigureTable& one : all.tables) json["tables"].push_back(table_json(one));
    json["cells"] = Json::array();
    for (const ReproducedCell& one : all.cells) json["cells"].push_back(cell_json(one));
    return json;
}

}  // namespace moehub
