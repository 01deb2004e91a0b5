#include "base/json.hpp"
#include "report/plan_report.hpp"

namespace moehub {
namespace {

Json layout_json(const ParallelLayout& layout) {
    return {{"text", to_text(layout)},
            {"tp", layout.tp},
            {"cp", layout.cp},
            {"pp", layout.pp},
            {"vpp", layout.vpp},
            {"ep", layout.ep},
            {"etp", layout.etp},
            {"micro_batch", layout.micro_batch},
            {"sharding", name_of(layout.sharding)},
            {"recompute", name_of(layout.recompute)},
            {"offload", name_of(layout.offload)},
            {"overlap", name_of(layout.overlap)},
            {"system", layout.system}};
}

Json parts_json(const std::vector<NamedPart>& parts) {
    Json json = Json::object();
    for (const NamedPart& part : parts) json[part.key] = part.value;
    return json;
}

Json step_json(const TrainingStep& step) {
    Json json;
    json["layout"] = layout_json(step.layout);
    json["step_seconds"] = step.seconds;
    json["tokens_per_second_per_gpu"] = step.tokens_per_second;
    json["flops_per_second_per_gpu"] = 1e12 * step.tflops();
    json["mfu"] = step.mfu;
    json["micro_batches"] = step.micro_batches;
    json["limit"] = step.limit;
    json["parts_seconds"] = parts_json(parts_of(step.parts));
    json["memory_bytes"] = parts_json(parts_of(step.memory));
    json["memory_bytes"]["sum"] = step.memory.sum();
    json["host_bytes"] = step.memory.host;
    json["fits"] = step.fits;
    json["stages"] = Json::array();
    for (const StageTime& one : step.stages)
        json["stages"].push_back({{"stage", one.stage},
                                  {"piece", one.piece},
                                  {"forward_seconds", one.forward},
                                  {"backward_seconds", one.backward}});
    return json;
}

Json steps_json(const std::vector<TrainingStep>& steps) {
    Json json = Json::array();
    for (const TrainingStep& step : steps) json.push_back(step_json(step));
    return json;
}

Json head_json(const PlanCase& what, const TrainingStep& any) {
    const TrainingRun& run = what.run;
    Json json;
    json["model"] = what.model_name;
    json["machine"] = what.machine_name;
    json["trainer"] = what.trainer_name;
    json["set"] = what.settings;
    json["fixed"] = what.fixed;
    json["gpus"] = run.gpus();
    json["nodes"] = run.machine.nodes;
    json["sequence"] = run.sequence;
    json["global_batch"] = run.global_batch;
    json["tokens"] = run.sequence * run.global_batch;
    json["precision"] = run.precision == NumberFormat::fp8 ? "fp8" : "bf16";
    json["routing"] = run.routing;
    json["mtp"] = run.mtp && run.model.mtp_layers > 0;
    json["flops_per_token"] = any.flops_per_token;
    json["causal_flops"] = run.trainer.causal_flops;
    json["capacity_bytes"] = any.capacity;
    return json;
}

}  // namespace

Json plan_json(const PlanCase& what, const Plan& plan) {
    Json json = head_json(what, plan.best.front());
    json["layouts"] = plan.layouts;
    json["timed"] = plan.timed;
    json["too_large"] = plan.too_large;
    json["refused"] = plan.refused;
    json["refusal"] = plan.refusal.empty() ? Json(nullptr) : Json(plan.refusal);
    json["best"] = steps_json(plan.best);
    json["systems"] = steps_json(plan.systems);
    json["front"] = steps_json(plan.front);
    return json;
}

Json plan_json(const PlanCase& what, const TrainingStep& step) {
    Json json = head_json(what, step);
    json["step"] = step_json(step);
    return json;
}

}  // namespace moehub
