#include "report/shape_report.hpp"

namespace moehub {
namespace {

Json window_json(const ParameterWindow& window) {
    return {{"centre", window.centre}, {"width", window.width}};
}

Json shape_json(const TimedShape& one) {
    const Model& m = one.model;
    return {{"layers", m.layers},
            {"dense_layers", m.dense_layers},
            {"hidden", m.hidden},
            {"heads", m.attention.heads},
            {"experts", m.experts},
            {"top_k", m.top_k},
            {"expert_ffn", m.expert_ffn},
            {"shared_experts", m.shared_experts},
            {"parameters", one.total},
            {"active_parameters", one.active},
            {"tokens_per_second_per_gpu", one.step.tokens_per_second},
            {"mfu", one.step.mfu},
            {"step_seconds", one.step.seconds},
            {"parallel_layout", to_text(one.step.layout)}};
}

Json axes_json(const std::vector<AxisBest>& axes) {
    Json json = Json::object();
    for (const AxisBest& axis : axes) {
        json[axis.axis] = Json::array();
        for (std::size_t i = 0; i < axis.values.size(); ++i)
            json[axis.axis].push_back({{"value", axis.values[i]},
                                       {"tokens_per_second_per_gpu", axis.tokens_per_second[i]}});
    }
    return json;
}

}  // namespace

Json shape_json(const ShapeSearch& found, const ShapeSearchOptions& options,
                const TrainingRun& run) {
    Json json;
    json["machine"] = run.machine.name;
    json["gpus"] = run.gpus();
    json["base_model"] = run.model.name;
    json["parameters"] = window_json(options.total);
    json["active_parameters"] = window_json(options.active);
    json["points"] = found.points;
    json["within"] = found.within;
    json["timed"] = found.timed;
    json["parallel_layouts"] = Json::array();
    for (const ParallelLayout& layout : found.layouts)
        json["parallel_layouts"].push_back(to_text(layout));
    json["best"] = Json::array();
    for (const TimedShape& one : found.best) json["best"].push_back(shape_json(one));
    json["base"] = found.base ? shape_json(*found.base) : Json(nullptr);
    json["base_rank"] = found.base_rank;
    json["by_axis"] = axes_json(found.by_axis);
    return json;
}

}  // namespace moehub
