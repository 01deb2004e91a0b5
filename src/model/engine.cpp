/// The field table of EngineSpec: a new field is one member in <moehub/engine.hpp> and one row
/// here.
#include "model/records.hpp"

#include <moehub/engine.hpp>

namespace moehub {
namespace {

Fields overhead_fields(EngineOverheads& o) {
    using enum FieldKind;
    constexpr Limits kKernels = {0, 100};
    return {
        {"fp8_cache", &o.fp8_cache, flag, {}, "where weights are quantised"},
        {"host", &o.host, time, kTime, "between two steps, not hidden"},
        {"host_request", &o.host_request, time, kTime, "the same for each request"},
        {"host_mixed", &o.host_mixed, time, kTime, "further, of workers that read prompts"},
        {"small_kernel", &o.small_kernel, time, kTime, "launch of a norm, an activation"},
        {"mla_kernels", &o.mla_kernels, number, kKernels, "further, of latent attention"},
        {"moe_kernels", &o.moe_kernels, number, kKernels, "further, of routed experts"},
        {"w4_start", &o.w4_start, time, kTime, "of experts of 4-bit weights, beyond bf16's"},
        {"start_hidden", &o.start_hidden, number, {0, 1}, "of launches, behind other kernels"},
    };
}

}  // namespace

Fields fields_of(EngineSpec& e) {
    using enum FieldKind;
    Fields fields = {
        {"name", &e.name, text, {}, "of the engine"},
        {"title", &e.title, text, {}, "one line"},
        {"linear", &e.linear, text, {}, "libraries of linear layers, best first"},
        {"attention", &e.attention, text, {}, "of attention"},
        {"mla", &e.mla, text, {}, "of latent attention"},
        {"moe", &e.moe, text, {}, "of routed experts"},
        {"dispatched", &e.dispatched, text, {}, "of experts whose rows a system brings"},
        {"mixed_steps", &e.mixed_steps, flag, {}, "prompts share steps with decoding"},
        {"step_tokens", &e.step_tokens, count, {1, 1 << 24}, "new ones of a step, at most"},
        one_of("exchange", e.exchange, {"gather", "all-to-all"},
               "of tokens, behind data-parallel attention"),
        {"one_shot", &e.one_shot, flag, {}, "small all-reduces in one kernel"},
        {"shared_beside", &e.shared_beside, flag, {}, "shared experts beside routed ones"},
        {"memory", &e.memory, number, {0.05, 1}, "of HBM beside weights, for the cache"},
        {"small_kernels", &e.small_kernels, number, {0, 100}, "norms and such of a layer"},
    };
    nest(fields, "hopper.", overhead_fields(e.hopper));
    nest(fields, "blackwell.", overhead_fields(e.blackwell));
    for (Field& field : fields) field.need = Need::optional;
    return fields;
}

}  // namespace moehub
