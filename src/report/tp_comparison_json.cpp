#include "report/comparison_json.hpp"
#include "report/tp_comparison.hpp"
#include "study/collective_names.hpp"

namespace moehub {
namespace {

Json results_json(const Comparison& comparison) {
    Json json = Json::array();
    for (const ComparisonRow& row : comparison.rows) json.push_back(row_json(row, false));
    return json;
}

Json part_json(SubLayer part, const Comparison& comparison) {
    Json json;
    json["sub_layer"] = std::string(name_of(part));
    json["baseline"] = comparison.baseline;
    json["results"] = results_json(comparison);
    return json;
}

}  // namespace

Json tp_comparison_json(const TpCase& layer, const std::vector<Comparison>& parts) {
    Json json;
    json["layer_type"] = "tp";
    json["machine"] = layer.machine_name;
    json["model"] = layer.model_name;
    json["set"] = layer.settings;
    json["gpus"] = layer.machine.gpus();
    json["tokens"] = layer.tokens;
    json["grain"] = name_of(layer.options.grain);
    if (parts.size() == 1) {
        json["sub_layer"] = std::string(name_of(layer.parts.front()));
        json["baseline"] = parts.front().baseline;
        json["results"] = results_json(parts.front());
        json["left_out"] = left_out_json(parts.front().left_out);
        return json;
    }
    json["sub_layers"] = Json::array();
    for (std::size_t i = 0; i < parts.size(); ++i)
        json["sub_layers"].push_back(part_json(layer.parts[i], parts[i]));
    const Comparison sum = sum_of(parts);
    json["baseline"] = sum.baseline;
    json["results"] = results_json(sum);
    json["left_out"] = left_out_json(sum.left_out);
    return json;
}

}  // namespace moehub
