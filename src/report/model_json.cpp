#include "base/json.hpp"
#include "report/comparison.hpp"
#include "report/model_report.hpp"
#include "sim/gpu/transformer.hpp"

#include <algorithm>

namespace moehub {
namespace {

Json part_json(const LayerTypeTime& part) {
    return {{"name", part.name},
            {"count", part.count},
            {"forward_us", to_us(part.forward)},
            {"backward_us", to_us(part.backward)},
            {"beside_us", to_us(part.beside)},
            {"total_us", to_us(part.total())}};
}

Json time_json(const ModelTime& time, const ModelTime& baseline) {
    Json json;
    json["system"] = time.system;
    json["time_us"] = to_us(time.total);
    json["speedup"] = static_cast<double>(baseline.total) / static_cast<double>(time.total);
    json["tokens_per_second"] = time.tokens_per_second;
    json["mfu"] = time.mfu;
    json["parts"] = Json::array();
    for (const LayerTypeTime& part : time.parts) json["parts"].push_back(part_json(part));
    if (time.overlapped)
        json["overlapped"] = {{"period_us", to_us(time.overlapped->period)},
                              {"busy_us", to_us(time.overlapped->busy)},
                              {"compute_us", to_us(time.overlapped->compute)},
                              {"communication_us", to_us(time.overlapped->communication)},
                              {"host_us", to_us(time.overlapped->host)}};
    return json;
}

/// One pass of the MoE layer as a comparison of its own, with the model's baseline.
Json layer_json(const ModelCase& model, Pass pass) {
    const auto result = [pass](const ModelTime& time) -> const LayerResult& {
        return pass == Pass::forward ? time.moe : *time.moe_backward;
    };
    const ModelTime& baseline = baseline_of(model.times);
    const auto ideal = std::find_if(model.times.begin(), model.times.end(),
                                    [](const auto& one) { return one.system == "ideal"; });
    Comparison comparison;
    comparison.baseline = baseline.system;
    for (const ModelTime& time : model.times) {
        const auto own = static_cast<double>(result(time).time);
        ComparisonRow row{
            time.spec, result(time), static_cast<double>(result(baseline).time) / own, {}};
        if (ideal != model.times.end())
            row.share_of_ideal = static_cast<double>(result(*ideal).time) / own;
        comparison.rows.push_back(std::move(row));
    }
    return Json::parse(to_json(model.layer, comparison));
}

}  // namespace

std::string to_json(const ModelCase& model) {
    const LayerCase& layer = model.layer;
    const ModelTime& baseline = baseline_of(model.times);
    Json json;
    json["machine"] = layer.machine_name;
    json["model"] = layer.model_name;
    json["set"] = layer.settings;
    json["gpus"] = layer.machine.gpus();
    json["tokens"] = layer.routing.tokens;
    json["sequence"] = sequences_of(layer.model, layer.routing.tokens, layer.machine.gpus(),
                                    model.options.sequence)
                           .length;
    json["layers"] = layer.model.layers;
    json["training"] = model.options.training;
    json["eager"] = model.options.eager;
    json["model_flops"] = baseline.flops;
    json["baseline"] = baseline.system;
    json["results"] = Json::array();
    for (const ModelTime& time : model.times) json["results"].push_back(time_json(time, baseline));
    json["moe_layer"] = layer_json(model, Pass::forward);
    if (model.options.training) json["moe_layer_backward"] = layer_json(model, Pass::backward);
    return json.dump(2) + "\n";
}

}  // namespace moehub
