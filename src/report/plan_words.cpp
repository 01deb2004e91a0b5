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

std::string keys_text(const ParallelLayout& layout) {
    std::vector<std::string> keys;
    const auto number = [&](std::string_view key, int value) {
        if (value != 1) keys.push_back(fmt::format("{}={}", key, value));
    };
    number("tp", layout.tp);
    number("cp", layout.cp);
    number("pp", layout.pp);
    number("vpp", layout.vpp);
    number("ep", layout.ep);
    number("etp", layout.etp);
    number("mb", layout.micro_batch);
    const auto word = [&](std::string_view key, std::string_view value) {
        if (!value.empty() && value != "none") keys.push_back(fmt::format("{}={}", key, value));
    };
    if (layout.sharding != Sharding::zero1)
        keys.push_back(fmt::format("sharding={}", name_of(layout.sharding)));
    word("recompute", name_of(layout.recompute));
    word("offload", name_of(layout.offload));
    word("overlap", name_of(layout.overlap));
    word("system", layout.system);
    if (keys.empty()) keys.emplace_back("tp=1");
    return fmt::format("{}", fmt::join(keys, ","));
}

std::string head_text(const PlanCase& what, double flops_per_token) {
    const TrainingRun& run = what.run;
    const int nodes = run.machine.nodes;
    std::string text = fmt::format(
        "{} on {}: {} GPU{}{}, {}, by {}\n", what.model_name, what.machine_name,
        grouped(run.gpus()), run.gpus() > 1 ? "s" : "",
        nodes > 1 ? fmt::format(" in {} nodes", grouped(nodes)) : "",
        run.precision == NumberFormat::fp8 ? "fp8" : "bf16", what.trainer_name);
    text += fmt::format("a step: {} sequence{} of {} tokens, {} tokens{}\n",
                        grouped(run.global_batch), run.global_batch > 1 ? "s" : "",
                        grouped(run.sequence), grouped(run.global_batch * run.sequence),
                        run.model.experts > 0 ? fmt::format("; {} routing", run.routing) : "");
    text += fmt::format(
        "a token: {} GFLOP forward and backward, {} of attention's pairs counted{}\n",
        significant(flops_per_token / 1e9), run.trainer.causal_flops ? "half" : "all",
        run.model.mtp_layers == 0 ? "" : run.mtp ? ", with multi-token prediction"
                                                 : ", without multi-token prediction");
    if (!what.fixed.empty()) text += fmt::format("fixed: {}\n", what.fixed);
    if (!what.settings.empty()) text += fmt::format("with {}\n", fmt::join(what.settings, ", "));
    return text;
}

}  // namespace moehub
