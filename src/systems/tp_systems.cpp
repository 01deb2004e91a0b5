// The tables of systems for tensor-parallel sub-layers and of their programs, and what each asks
// for.
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "systems/programs.hpp"
#include "systems/tp/tp.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>
#include <moehub/tp.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

using namespace systems;

struct TpProgram {
    std::string_view name;
    const char* file;  ///< in src/systems/tp
    LayerResult (*run)(const layers::TpJob&);
    bool in_switch = false;                   ///< switches multicast and reduce
    bool spare_sms = false;                   ///< communication holds some, and some are left
    std::vector<std::string_view> keys = {};  ///< parameters it reads
};

const std::vector<TpProgram>& programs() {
    static const std::vector<TpProgram> kPrograms = {
        {"ideal", "ideal.cpp", run_tp_ideal, false, false, {"switch_copies"}},
        {"tp-nvls", "tp_nvls.cpp", run_tp_nvls, true},
        {"sp-nvls", "sp_nvls.cpp", run_sp_nvls, true},
        {"coconet", "coconet.cpp", run_coconet, false, true, {"communication_sms"}},
        {"fuselib", "fuselib.cpp", run_fuselib, false, false, {"communication_sms"}},
        {"t3", "t3.cpp", run_t3},
        {"coconet-nvls",
         "coconet_nvls.cpp",
         run_coconet_nvls,
         true,
         true,
         {"communication_sms", "load_window"}},
        {"fuselib-nvls",
         "fuselib_nvls.cpp",
         run_fuselib_nvls,
         true,
         false,
         {"communication_sms", "load_window"}},
        {"t3-nvls", "t3_nvls.cpp", run_t3_nvls, true},
        {"ladm", "ladm.cpp", run_ladm, false, false, {"load_window"}},
        {"cais",
         "cais.cpp",
         run_cais,
         true,
         false,
         {"coordinate", "fuse_blocks", "separate_channels", "load_window"}},
    };
    return kPrograms;
}

/// Parameters of every program that say nothing here: the software around a MoE layer.
constexpr std::string_view kEveryones[] = {"host", "fused_activation"};

/// In the order in which they are listed; presets/systems has one of each.
constexpr std::string_view kSystems[] = {"ideal",
                                         "tp-nvls",
                                         "sp-nvls",
                                         "coconet",
                                         "fuselib",
                                         "t3",
                                         "coconet-nvls",
                                         "fuselib-nvls",
                                         "t3-nvls",
                                         "ladm",
                                         "cais-base",
                                         "cais-partial",
                                         "cais-uncoordinated",
                                         "cais"};

const TpProgram& program_of(const SystemSpec& system) {
    std::vector<std::string> names;
    for (const TpProgram& program : programs()) {
        if (program.name == system.program && !system.own) return program;
        names.emplace_back(program.name);
    }
    throw InputError(fmt::format(
        "system {}: its program {} does not run tensor-parallel sub-layers{}, allowed: {}",
        system.name, quoted(system.program), did_you_mean(system.program, names),
        fmt::join(names, ", ")));
}

void check_keys(const SystemSpec& system, const TpProgram& program) {
    for (const std::string& key : changed_keys(system)) {
        const auto has = [&](const auto& keys) {
            return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
        };
        if (has(kEveryones) || has(program.keys)) continue;
        throw InputError(fmt::format(
            "system {}: {} is not a parameter of the program {}{}", system.name, key, program.name,
            program.keys.empty() ? ", which has none"
                                 : fmt::format("; it has: {}", fmt::join(program.keys, ", "))));
    }
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

LayerResult systems::run_tp_job(const layers::TpJob& job) {
    return program_of(job.system).run(job);
}

std::vector<SystemInfo> all_tp_systems() {
    std::vector<SystemInfo> list;
    for (const std::string_view name : kSystems) {
        const SystemSpec system = load_system(std::string(name));
        SystemInfo info;
        info.name = system.name;
        info.title = system.title;
        info.program = program_text(std::string("tp/") + program_of(system).file);
        info.lines = lines_of_code(info.program);
        list.push_back(std::move(info));
    }
    return list;
}

void check_tp(const TpInput& in, const SystemSpec& system, const TpOptions&) {
    const TpProgram& program = program_of(system);
    check_keys(system, program);
    check(in.machine);
    check(system);
    check(in.model);
    check_shape(in);
    const auto fail = [&](const std::string& why) { throw CannotRun(system.name, why); };
    if (in.machine.nodes > 1)
        fail(fmt::format("tensor parallelism works inside one node, found {} nodes",
                         in.machine.nodes));
    if (system.host != HostMode::graph)
        fail("host: found eager, allowed graph: the kernels of a sub-layer follow by themselves");
    const bool switched = in.machine.topology == NodeTopology::switched;
    if (program.in_switch && in.machine.gpus() > 1 && !(in.machine.in_switch && switched))
        fail(fmt::format("the switches of {} do not multicast and reduce", in.machine.name));
    if (program.in_switch && in.machine.link.ack_flits == 0)
        fail("link.ack_flits: found 0, allowed 1 or more: switches merge acknowledgements");
    if (program.spare_sms && system.communication_sms < 1)
        fail("communication_sms: found 0, allowed: 1 or more");
    if (system.communication_sms >= in.machine.gpu.sms)
        fail(fmt::format("communication holds {} SMs, and a GPU of {} has {}",
                         system.communication_sms, in.machine.name, in.machine.gpu.sms));
    if (system.separate_channels && in.machine.link.request_channels < 2)
        fail("link.request_channels: found 1, allowed 2 or more for separate_channels");
}

LayerResult simulate_tp(const TpInput& input, const SystemSpec& system, const TpOptions& options) {
    check_tp(input, system, options);
    return systems::run_tp_job({input, system, options});
}

LayerResult simulate_tp(const TpInput& input, std::string_view system, const TpOptions& options) {
    return simulate_tp(input, load_system(std::string(system)), options);
}

}  // namespace moehub
