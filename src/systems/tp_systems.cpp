// The tables of systems for tensor-parallel sub-layers and of their programs, and what each asks
// for.
#include "base/quantity.hpp"
#include "systems/programs.hpp"
#include "systems/systems.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>
#include <moehub/tp.hpp>

#include <fmt/format.h>

namespace moehub {
namespace {

using namespace systems;

struct TpRunnable : ProgramRow {
    LayerResult (*run)(const TpJob&);  ///< in src/systems/tp, in the file of its name
};

const TpRunnable& tp_program_of(const SystemSpec& system) {
    using enum Requirement;
    static const std::vector<TpRunnable> kPrograms = {
        {{"ideal", {"switch_copies"}, {}}, run_tp_ideal},
        {{"tp-nvls", {}, {in_switch}}, run_tp_nvls},
        {{"sp-nvls", {}, {in_switch}}, run_sp_nvls},
        {{"coconet", {"communication_sms"}, {spare_sms}}, run_coconet},
        {{"fuselib", {"communication_sms"}, {}}, run_fuselib},
        {{"t3", {}, {}}, run_t3},
        {{"coconet-nvls", {"communication_sms", "load_window"}, {in_switch, spare_sms}},
         run_coconet_nvls},
        {{"fuselib-nvls", {"communication_sms", "load_window"}, {in_switch}}, run_fuselib_nvls},
        {{"t3-nvls", {}, {in_switch}}, run_t3_nvls},
        {{"ladm", {"load_window"}, {}}, run_ladm},
        {{"cais", {"coordinate", "fuse_blocks", "separate_channels", "load_window"}, {in_switch}},
         run_cais},
    };
    return row_of(kPrograms, system, "its program {} does not run tensor-parallel sub-layers");
}

void check_shape(const TpInput& in) {
    const layers::TpShape shape = layers::tp_shape(in.model, in.part);
    const auto fail = [&](const std::string& what) {
        throw InputError(
            fmt::format("{} of model {}: {}", name_of(in.part), quoted(in.model.name), what));
    };
    constexpr std::int64_t kMostRows = 1 << 24;
    if (in.tokens < 1 || in.tokens > kMostRows)
        fail(fmt::format("found {} tokens, allowed 1 to {}", in.tokens, kMostRows));
    if (in.model.attention.heads < 1) fail("found no attention heads");
    const bool ffn = in.part != SubLayer::attention_in && in.part != SubLayer::attention_out;
    if (ffn && in.model.dense_ffn < 1)
        fail("found no dense FFN, allowed: attention-out and attention-in");
    constexpr Bytes kMostShare = Bytes{1} << 32;  // a row's place in a GPU's share has 32 bits
    const Bytes share = (in.tokens / in.machine.gpus() + 1) * 2 * Bytes{in.model.hidden};
    if (share >= kMostShare)
        fail(fmt::format("a GPU's share of the rows has {} B, allowed less than 4 GiB", share));
    for (const std::int64_t width : {shape.before, shape.after_whole ? 0 : shape.after})
        if (width > 0 && width < in.machine.gpus())
            fail(fmt::format("a width of {} cannot be cut over {} GPUs", width, in.machine.gpus()));
}

}  // namespace

LayerResult systems::run_tp_job(const TpJob& job) {
    return tp_program_of(job.system).run(job);
}

/// In the order in which they are listed; presets/systems has one of each.
std::vector<SystemInfo> all_tp_systems() {
    return infos_of(
        "ideal tp-nvls sp-nvls coconet fuselib t3 coconet-nvls fuselib-nvls t3-nvls ladm "
        "cais-base cais-partial cais-uncoordinated cais",
        "tp");
}

void check_tp(const TpInput& in, const SystemSpec& system, const TpOptions&) {
    const TpRunnable& program = tp_program_of(system);
    check_keys(system, program, {"host", "fused_activation"});  // keys of a MoE layer say nothing
    check(in.machine);
    check(system);
    check(in.model);
    check_shape(in);
    if (in.machine.nodes > 1)
        cannot_run(system, "tensor parallelism works inside one node, found {} nodes",
                   in.machine.nodes);
    if (system.host != HostMode::graph)
        cannot_run(system,
                   "host: found eager, allowed graph: the kernels of a sub-layer follow by "
                   "themselves");
    const bool switched = program.needs.has(Requirement::in_switch);
    if (switched && in.machine.gpus() > 1) check_switches(in.machine, system);
    check_sms(in.machine, system, program.needs);
    if (system.communication_sms >= in.machine.gpu.sms)
        cannot_run(system, "communication holds {} SMs, and a GPU of {} has {}",
                   system.communication_sms, in.machine.name, in.machine.gpu.sms);
    if (system.separate_channels && in.machine.link.request_channels < 2)
        cannot_run(system,
                   "link.request_channels: found 1, allowed 2 or more for separate_channels");
}

LayerResult simulate_tp(const TpInput& input, const SystemSpec& system, const TpOptions& options) {
    check_tp(input, system, options);
    return systems::run_tp_job({input, system, options});
}

LayerResult simulate_tp(const TpInput& input, std::string_view system, const TpOptions& options) {
    return simulate_tp(input, load_system(std::string(system)), options);
}

}  // namespace moehub
