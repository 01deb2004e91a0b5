#include "base/json.hpp"
#include "report/comparison.hpp"
#include "report/comparison_json.hpp"
#include "report/model_head.hpp"
#include "report/tp_comparison.hpp"

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

Json layer_json(const ModelCase& model, Pass pass) {
    return comparison_json(model.layer, layer_comparison(model, pass));
}

/// What was asked for, of either kind of model.
template <class Case>
Json head_json(const Case& model, std::int64_t tokens, std::int64_t sequence) {
    const ModelTime& baseline = baseline_of(model.times, model.options.baseline);
    Json json;
    json["machine"] = model.layer.machine_name;
    json["model"] = model.layer.model_name;
    json["set"] = model.layer.settings;
    json["gpus"] = model.layer.machine.gpus();
    json["tokens"] = tokens;
    json["sequence"] = sequence;
    json["layers"] = model.layer.model.layers;
    json["training"] = model.options.training;
    json["eager"] = model.options.eager;
    json["model_flops"] = baseline.flops;
    json["baseline"] = baseline.system;
    json["results"] = Json::array();
    for (const ModelTime& time : model.times) json["results"].push_back(time_json(time, baseline));
    return json;
}

/// Attention's halves, the same for all systems.
Json attention_json(const ModelCase& model) {
    const ModelTime& any = model.times.front();
    Json json;
    json["gpus"] = model.options.attention_gpus;
    json["system"] = any.sub_layers.front().result.system;
    json["sub_layers"] = Json::array();
    for (const SubLayerResult& one : any.sub_layers) {
        json["sub_layers"].push_back(row_json({{}, one.result, 1, {}}, false));
        json["sub_layers"].back().put_first("sub_layer", name_of(one.part));
    }
    return json;
}

}  // namespace

Json model_json(const ModelCase& model) {
    const std::int64_t tokens = model.layer.routing.tokens;
    Json json = head_json(model, tokens, sequences_of(model).length);
    if (model.options.attention_gpus > 0) json["attention_tp"] = attention_json(model);
    json["moe_layer"] = layer_json(model, Pass::forward);
    if (model.options.training) json["moe_layer_backward"] = layer_json(model, Pass::backward);
    return json;
}

Json model_json(const DenseCase& model) {
    const std::int64_t tokens = model.layer.tokens;
    Json json = head_json(model, tokens, sequences_of(model).length);
    json["overlap_gradients"] = model.options.overlap_gradients;
    json["sub_layers"] = Json::array();
    for (std::size_t i = 0; i < model.times.front().sub_layers.size(); ++i) {
        TpCase one = model.layer;
        one.parts = {model.times.front().sub_layers[i].part};
        json["sub_layers"].push_back(tp_comparison_json(one, {sub_layer_comparison(model, i)}));
    }
    return json;
}

}  // namespace moehub
