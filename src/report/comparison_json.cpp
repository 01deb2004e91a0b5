#include "report/comparison_json.hpp"

#include "report/comparison.hpp"
#include "study/collective_names.hpp"

namespace moehub {
namespace {

template <class Value>
Json or_null(const std::optional<Value>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json statistics_json(const std::vector<Statistic>& statistics) {
    Json json = Json::object();
    for (const Statistic& one : statistics) json[one.unit][one.name] = one.value;
    return json;
}

}  // namespace

Json row_json(const ComparisonRow& row, bool with_software) {
    const LayerResult& result = row.result;
    Json json;
    json["system"] = result.system;
    if (with_software)
        json["software"] = {{"host", row.system.host == HostMode::eager ? "eager" : "graph"},
                            {"host_waits", result.host_waits},
                            {"fused_activation", row.system.fused_activation},
                            {"expert_format", name_of(row.system.expert_format)},
                            {"dispatch_element_bytes", row.system.dispatch_element}};
    json["time_us"] = to_us(result.time);
    json["speedup"] = row.speedup;
    json["share_of_ideal"] = or_null(row.share_of_ideal);
    json["first_gemm_us"] = to_us(result.first_gemm);
    json["dispatch_us"] = to_us(result.dispatch);
    json["combine_us"] = to_us(result.combine);
    json["traffic_bytes"] = {
        {"up", result.bytes_up}, {"down", result.bytes_down}, {"payload", result.payload}};
    json["breakdown"] = {{"compute_us", to_us(result.breakdown.compute)},
                         {"communication_us", to_us(result.breakdown.communication)},
                         {"host_us", to_us(result.breakdown.host)}};
    json["sm_busy"] = result.sm_busy;
    json["rows"] = result.rows;
    json["packets"] = result.packets;
    json["verified"] = result.verified;
    json["largest_error"] = result.verified ? Json(result.largest_error) : Json(nullptr);
    json["statistics"] = statistics_json(result.statistics);
    return json;
}

Json left_out_json(const std::vector<LeftOut>& systems) {
    Json json = Json::array();
    for (const LeftOut& one : systems)
        json.push_back({{"system", one.system}, {"reason", one.reason}});
    return json;
}

Json comparison_json(const LayerCase& layer, const Comparison& comparison) {
    const LayerOptions& options = layer.options;
    Json json;
    json["machine"] = layer.machine_name;
    json["model"] = layer.model_name;
    json["set"] = layer.settings;
    json["gpus"] = layer.machine.gpus();
    json["tokens"] = layer.routing.tokens;
    json["experts"] = layer.model.experts;
    json["top_k"] = layer.model.top_k;
    json["gated"] = layer.model.gated;
    json["routing"] = layer.routing_name;
    json["seed"] = or_null(layer.seed);
    json["layer"] = or_null(layer.trace_layer);
    json["grain"] = name_of(options.grain);
    json["pass"] = options.pass == Pass::forward ? "forward" : "backward";
    json["tensor_parallel"] = options.tensor_parallel;
    json["layout"] = layer.layout ? Json{{"file", layer.layout->file},
                                         {"layer", layer.layout->layer},
                                         {"layer_of_model", layer.layout->number},
                                         {"mean", layer.layout->mean}}
                                  : Json(nullptr);
    json["replicas"] = layer.replicas;
    json["replica_policy"] =
        options.replicas == ReplicaPolicy::round_robin ? "round-robin" : "least-loaded";
    json["region_rows"] = options.region_rows;
    json["page_rows"] = options.page_rows;
    json["page_pool_bytes"] = options.page_pool;
    json["baseline"] = comparison.baseline;
    json["results"] = Json::array();
    for (const ComparisonRow& row : comparison.rows) json["results"].push_back(row_json(row, true));
    json["left_out"] = left_out_json(comparison.left_out);
    return json;
}

}  // namespace moehub
