#include "base/json.hpp"
#include "report/comparison_json.hpp"
#include "report/served_report.hpp"

namespace moehub {
namespace {

Json step_json(const ServedStep& step) {
    Json json{{"system", step.system},
              {"step_us", 1e6 * step.seconds},
              {"hidden_us", 1e6 * step.hidden},
              {"tokens_per_second_per_gpu", step.tokens_per_second}};
    json["tpot_us"] = step.tpot > 0 ? Json(1e6 * step.tpot) : Json(nullptr);
    json["busiest_link"] = step.busiest_link.empty()
                               ? Json(nullptr)
                               : Json{{"name", step.busiest_link}, {"busy", step.network_busy}};
    json["parts"] = Json::array();
    for (const ServedPart& part : parts_of(step))
        json["parts"].push_back({{"name", part.name}, {"time_us", 1e6 * part.seconds}});
    json["operators"] = Json::array();
    for (const StepOperator& one : step.operators)
        json["operators"].push_back({{"name", one.name},
                                     {"kind", name_of(one.kind)},
                                     {"count", one.count},
                                     {"time_us", 1e6 * one.seconds}});
    return json;
}

Json head_json(const ServedCase& what) {
    const Serving& serving = what.serving;
    const ServingMemory memory = memory_of(serving);
    const ServingLayout& layout = serving.what.layout;
    return {{"machine", what.machine_name},
            {"model", serving.what.model.name},
            {"engine", serving.what.engine.name},
            {"phase", serving.prefill ? "prefill" : "decode"},
            {"gpus", serving.gpus()},
            {"batch_per_gpu", serving.batch_per_gpu},
            {serving.prefill ? "prompt" : "context", serving.context},
            {"weights", what.weights},
            {"overlap", name_of(serving.overlap)},
            {"routing", what.routing},
            {"layout_file", what.layout.empty() ? Json(nullptr) : Json(what.layout)},
            {"layout",
             {{"attention_tp", layout.attention_tp},
              {"attention_dp", layout.attention_dp},
              {"moe_tp", layout.moe_tp},
              {"moe_ep", layout.moe_ep}}},
            {"memory_bytes",
             {{"weights", memory.weights},
              {"cache_per_token", memory.cache_per_token},
              {"cache", memory.cache},
              {"capacity", memory.capacity}}},
            {"most_batch_per_gpu", most_batch_per_gpu(serving)},
            {"set", what.settings}};
}

}  // namespace

Json served_json(const ServedCase& what) {
    Json json = head_json(what);
    json["results"] = Json::array();
    for (const ServedStep& step : what.steps) json["results"].push_back(step_json(step));
    json["left_out"] = left_out_json(what.left_out);
    return json;
}

Json served_json(const SizesCase& sizes) {
    Json json = head_json(sizes.what);
    json["system"] = sizes.system;
    json["points"] = Json::array();
    for (const ServedPoint& point : sizes.points) {
        Json one{
            {"gpus", point.gpus}, {"batch_per_gpu", point.batch_per_gpu}, {"best", point.best}};
        one["step"] = point.step ? step_json(*point.step) : Json(nullptr);
        one["reason"] = point.step ? Json(nullptr) : Json(point.why_not);
        json["points"].push_back(one);
    }
    return json;
}

}  // namespace moehub
