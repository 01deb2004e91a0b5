/// The field table of TrainerSpec: a new field is one member in <moehub/trainer.hpp> and one row
/// here.
#include "model/records.hpp"

#include <moehub/trainer.hpp>

namespace moehub {
namespace {

Fields cost_fields(TrainerCosts& c) {
    using enum FieldKind;
    return {
        {"dispatcher", &c.dispatcher, text, {}, "system where a layout names none"},
        {"overlaps", &c.overlaps, text, {}, "of passes, where a layout names none; by ';'"},
        {"launch", &c.launch, time, kTime, "of the host, for each operator"},
        one_of("fp8", c.fp8, {"bf16", "fp8", "fp8-block"},
               "recipe of FP8: fp8 (a scale a tensor), fp8-block"),
        {"graphs", &c.graphs, number, {0, 1}, "of a layer's operators, replayed by CUDA graphs"},
        {"tensor", &c.tensor, number, {0.01, 2}, "of kernels' rate alone, in a long run"},
        {"fp8_tensor", &c.fp8_tensor, number, {0, 2}, "the same in FP8; 0: as tensor"},
        {"memory", &c.memory, number, {0.01, 2}, "the same of kernels that move bytes"},
    };
}

}  // namespace

Fields fields_of(TrainerSpec& t) {
    using enum FieldKind;
    Fields fields = {
        {"name", &t.name, text, {}, "of the trainer"},
        {"title", &t.title, text, {}, "one line"},
        {"sources", &t.sources, text, {}, "published runs that are its own, by ';'"},
        {"notes", &t.notes, text, {}, "of those, which: model, machine, precision, note; by ';'"},
        {"library", &t.library, text, {}, "of linear layers"},
        {"causal_flops", &t.causal_flops, flag, {}, "attention counts half in FLOPs"},
        {"gradients_overlap", &t.gradients_overlap, flag, {}, "sums beside the last backward"},
        {"parameters_overlap", &t.parameters_overlap, flag, Limits(),
         "gathered beside the first forward"},
        {"fsdp_overlap", &t.fsdp_overlap, number, {0, 1}, "of a layer, hides gathered weights"},
        {"fp8_rows", &t.fp8_rows, flag, {}, "on their way to experts of FP8"},
        {"gradient_bytes", &t.gradient_bytes, number, {1, 4}, "of a gradient on its way"},
        {"kept_gradient_bytes", &t.kept_gradient_bytes, number, {1, 4}, "of one that is added to"},
        {"state_bytes", &t.state_bytes, number, {2, 12}, "of the optimizer, a weight"},
        {"recompute", &t.recompute, text, {}, "where a run names none; empty: any"},
        {"micro_batch", &t.micro_batch, count, {0, 65536}, "where a run names none; 0: any"},
        {"passes", &t.passes, number, {0, 1000}, "further ones over a layer's rows, each way"},
        {"row_passes", &t.row_passes, number, {0, 1000}, "the same over rows of experts"},
        {"imbalance", &t.imbalance, number, {0, 10}, "of experts' shares, unless balanced"},
        {"step_host", &t.step_host, time, {0, 1e15}, "of a step: data, logging"},
    };
    nest(fields, "hopper.", cost_fields(t.hopper));
    nest(fields, "blackwell.", cost_fields(t.blackwell));
    for (Field& field : fields) field.need = Need::optional;
    return fields;
}

}  // namespace moehub
