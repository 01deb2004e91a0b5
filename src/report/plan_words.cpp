#include "report/plan_report.hpp"
#include "report/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {

std::vector<NamedPart> parts_of(const StepParts& parts) {
    return {
        {"attention", "attention", parts.attention, "█"},
        {"dense FFNs", "dense", parts.dense, "█"},
        {"routed experts", "experts", parts.experts, "█"},
        {"embedding, head", "head", parts.head, "█"},
        {"small kernels", "small", parts.small, "█"},
        {"recomputed", "recomputed", parts.recomputed, "▓"},
        {"tensor parallel", "tp", parts.tp, "▒"},
        {"context parallel", "cp", parts.cp, "▒"},
        {"expert parallel", "ep", parts.ep, "▒"},
        {"between stages", "pp", parts.pp, "▒"},
        {"data parallel", "dp", parts.dp, "▒"},
        {"pipeline bubble", "bubble", parts.bubble, "░"},
        {"expert imbalance", "imbalance", parts.imbalance, "░"},
        {"optimizer", "optimizer", parts.optimizer, "·"},
        {"offload", "offload", parts.offload, "·"},
        {"host", "host", parts.host, "·"},
    };
}

std::vector<NamedPart> parts_of(const StepMemory& memory) {
    return {
        {"weights", "weights", memory.weights, ""},
        {"gradients", "gradients", memory.gradients, ""},
        {"optimizer states", "optimizer", memory.optimizer, ""},
        {"activations", "activations", memory.activations, ""},
        {"buffers", "buffers", memory.buffers, ""},
        {"workspace", "workspace", memory.workspace, ""},
        {"margin", "margin", memory.margin, ""},
    };
}

std::string head_text(const PlanCase& what, double flops_per_token) {
    const TrainingRun& run = what.run;
    const int nodes = run.machine.nodes;
    std::string text =
        fmt::format("{} on {}: {} GPU{}{}, {}, by {}\n", what.model_name, what.machine_name,
                    grouped(run.gpus()), run.gpus() > 1 ? "s" : "",
                    nodes > 1 ? fmt::format(" in {} nodes", grouped(nodes)) : "",
                    run.precision == NumberFormat::fp8 ? "fp8" : "bf16", what.trainer_name);
    text += fmt::format("a step: {} sequence{} of {} tokens, {} tokens{}\n",
                        grouped(run.global_batch), run.global_batch > 1 ? "s" : "",
                        grouped(run.sequence), grouped(run.global_batch * run.sequence),
                        run.model.experts > 0 ? fmt::format("; {} routing", run.routing) : "");
    text +=
        fmt::format("a token: {} GFLOP forward and backward, {} of attention's pairs counted{}\n",
                    significant(flops_per_token / 1e9), run.trainer.causal_flops ? "half" : "all",
                    run.model.mtp_layers == 0 ? ""
                    : run.mtp                 ? ", with multi-token prediction"
                                              : ", without multi-token prediction");
    if (!what.fixed.empty()) text += fmt::format("fixed: {}\n", what.fixed);
    if (!what.settings.empty()) text += fmt::format("with {}\n", fmt::join(what.settings, ", "));
    return text;
}

}  // namespace moehub
