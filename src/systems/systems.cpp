// The tables of all systems and of their programs, and what each program can run.
#include "systems/systems.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "model/records.hpp"
#include "systems/check_loaded.hpp"
#include "systems/needs.hpp"
#include "systems/programs.hpp"

#include <moehub/error.hpp>
#include <moehub/presets.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

using namespace systems;

struct Program {
    std::string_view name;
    const char* file;  ///< in src/systems/moe
    LayerResult (*run)(const Job&);
    Needs needs;
    std::vector<std::string_view> keys;  ///< parameters it reads
};

const std::vector<Program>& programs() {
    static const std::vector<Program> kPrograms = {
        {"ideal", "ideal.cpp", run_ideal, {.computes = true}, {"switch_copies"}},
        {"torch",
         "torch.cpp",
         run_torch,
         {.one_gpu = true, .whole_experts = true, .computes = true, .plain = true},
         {}},
        {"megatron-te", "megatron_te.cpp", run_megatron_te, {}, {}},
        {"all-to-all", "all_to_all.cpp", run_all_to_all, {.whole_experts = true}, {"pxn"}},
        {"hierarchical", "hierarchical.cpp", run_hierarchical, {.whole_experts = true}, {}},
        {"fastermoe",
         "fastermoe.cpp",
         run_fastermoe,
         {.whole_experts = true, .even_experts = true, .spare_sms = true},
         {"group_gpus", "communication_sms"}},
        {"tutel",
         "tutel.cpp",
         run_tutel,
         {.whole_experts = true, .even_experts = true, .spare_sms = true},
         {"chunks", "communication_sms"}},
        {"ccfuser",
         "ccfuser.cpp",
         run_ccfuser,
         {.one_node = true, .whole_experts = true, .computes = true, .as_sent = true},
         {"barrier"}},
        {"comet",
         "comet.cpp",
         run_comet,
         {.one_node = true,
          .whole_experts = true,
          .computes = true,
          .spare_sms = true,
          .as_sent = true},
         {"chunks", "communication_sms"}},
        {"flashdmoe",
         "flashdmoe.cpp",
         run_flashdmoe,
         {.one_node = true,
          .whole_experts = true,
          .computes = true,
          .sends = true,
          .spare_sms = true,
          .one_kernel = true,
          .as_sent = true},
         {"communication_sms", "sending_sms"}},
        {"nvls",
         "nvls.cpp",
         run_nvls,
         {.one_node = true, .in_switch = true, .whole_experts = true},
         {}},
        {"deepep",
         "deepep.cpp",
         run_deepep,
         {.whole_experts = true, .spare_sms = true},
         {"communication_sms", "packet", "chunk_rows", "node_chunk_rows", "copy_share", "qp_rate",
          "host_waits", "barrier", "dispatch_element", "combine_element", "dispatch_start",
          "combine_start", "expert_format", "stores", "overlap_passes"}},
        {"deepep-ll",
         "deepep_ll.cpp",
         run_deepep_ll,
         {.whole_experts = true},
         {"combine_element", "packet", "nic_only"}},
        {"deepep-v2",
         "deepep_v2.cpp",
         run_deepep_v2,
         {.whole_experts = true, .spare_sms = true},
         {"communication_sms", "packet", "chunk_rows", "node_chunk_rows", "copy_share",
          "host_waits", "barrier", "combine_element", "dispatch_start", "combine_start"}},
        {"hybrid-ep",
         "hybrid_ep.cpp",
         run_hybrid_ep,
         {.whole_experts = true, .spare_sms = true},
         {"communication_sms", "packet", "chunk_rows", "node_chunk_rows", "copy_share",
          "host_waits", "barrier", "combine_element", "dispatch_start", "combine_start"}},
        {"one-sided",
         "one_sided.cpp",
         run_one_sided,
         {.one_node = true, .whole_experts = true},
         {"combine_element", "dispatch_start", "combine_start", "once_per_node",
          "communication_sms"}},
        {"mega-moe",
         "mega_moe.cpp",
         run_mega_moe,
         {.one_node = true,
          .whole_experts = true,
          .computes = true,
          .one_kernel = true,
          .as_sent = true},
         {"tensor_share", "combine_element", "barrier", "dispatch_start"}},
        {"dysharp",
         "dysharp.cpp",
         run_dysharp,
         {.in_switch = true,
          .whole_experts = true,
          .computes = true,
          .sends = true,
          .combines = true,
          .one_kernel = true,
          .as_sent = true,
          .one_piece = true},
         {"hub", "switch_copies", "sending_sms", "combining_sms", "load_window"}},
        {"dysharp-basic",
         "dysharp_basic.cpp",
         run_dysharp_basic,
         {.one_node = true,
          .in_switch = true,
          .whole_experts = true,
          .sends = true,
          .combines = true,
          .one_piece = true},
         {"hub", "switch_copies", "sending_sms", "combining_sms", "load_window"}},
        {"dysharp-comet",
         "dysharp_comet.cpp",
         run_dysharp_comet,
         {.one_node = true,
          .in_switch = true,
          .whole_experts = true,
          .computes = true,
          .sends = true,
          .combines = true,
          .as_sent = true,
          .one_piece = true},
         {"hub", "chunks", "sending_sms", "combining_sms", "load_window"}},
        {"moe-hub+dysharp",
         "moe_hub_dysharp.cpp",
         run_moe_hub_dysharp,
         {.one_node = true,
          .in_switch = true,
          .whole_experts = true,
          .computes = true,
          .sends = true,
          .combines = true,
          .one_kernel = true,
          .as_sent = true,
          .one_piece = true},
         {"hub", "sending_sms", "combining_sms", "load_window"}},
        {"moe-hub",
         "moe_hub.cpp",
         run_moe_hub,
         {.computes = true, .sends = true, .as_sent = true},
         {"stores", "sending_sms", "once_per_node", "communication_sms"}},
        {"mh-base",
         "mh_base.cpp",
         run_mh_base,
         {.computes = true, .sends = true, .as_sent = true},
         {"stores", "sending_sms"}},
    };
    return kPrograms;
}

/// Parameters of every program: the software around it.
constexpr std::string_view kEveryones[] = {"host", "fused_activation", "expert_format",
                                           "dispatch_element"};

/// In the order in which they are listed; presets/systems has one of each.
constexpr std::string_view kSystems[] = {"ideal",
                                         "torch",
                                         "megatron-te",
                                         "all-to-all",
                                         "hierarchical",
                                         "fastermoe",
                                         "tutel",
                                         "ccfuser",
                                         "comet",
                                         "deepep",
                                         "deepep-single-qp",
                                         "dualpipe",
                                         "deepep-ll",
                                         "deepep-ll-rdma",
                                         "deepep-v2",
                                         "hybrid-ep",
                                         "one-sided",
                                         "one-sided-relay",
                                         "flashdmoe",
                                         "mega-moe",
                                         "nvls",
                                         "dysharp",
                                         "dysharp-basic",
                                         "dysharp-comet",
                                         "fusion-only",
                                         "steps-only",
                                         "moe-hub",
                                         "moe-hub-relay",
                                         "mh-base",
                                         "mh-pkt",
                                         "mh-dep",
                                         "moe-hub+dysharp"};

const Program& program_of(const SystemSpec& system) {
    std::vector<std::string> names;
    for (const Program& program : programs()) {
        if (program.name == system.program) return program;
        names.emplace_back(program.name);
    }
    throw InputError(fmt::format("system {}: unknown program {}{}, allowed: {}", system.name,
                                 quoted(system.program), did_you_mean(system.program, names),
                                 fmt::join(names, ", ")));
}

void check_keys(const SystemSpec& system, const Program& program) {
    for (const std::string& key : changed_keys(system)) {
        const auto has = [&](const auto& keys) {
            return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
        };
        const bool no_host = key == "host" && program.name == "ideal";
        if (!no_host && (has(kEveryones) || has(program.keys))) continue;
        throw InputError(fmt::format(
            "system {}: {} is not a parameter of the program {}{}", system.name, key, program.name,
            program.keys.empty() ? ", which has none"
                                 : fmt::format("; it has: {}", fmt::join(program.keys, ", "))));
    }
}

}  // namespace

LayerResult systems::run_job(const Job& job) {
    return job.system.own ? run_own(job) : program_of(job.system).run(job);
}

std::vector<SystemInfo> all_systems() {
    std::vector<SystemInfo> list;
    for (const std::string_view name : kSystems) {
        const SystemSpec system = load_system(std::string(name));
        SystemInfo info;
        info.name = system.name;
        info.title = system.title;
        info.program = program_text(std::string("moe/") + program_of(system).file);
        info.lines = lines_of_code(info.program);
        list.push_back(std::move(info));
    }
    return list;
}

void systems::check_parameters(const SystemSpec& system) {
    if (!system.own) {
        check_keys(system, program_of(system));
    } else {
        check_keys(system, {"of one's own", "", run_own, {}, {"sending_sms"}});
    }
}

void check_layer(const LayerInput& input, const SystemSpec& system, const LayerOptions& options) {
    check(input.machine);
    check_loaded(input, system, options);
}

void systems::check_loaded(const LayerInput& input, const SystemSpec& system,
                           const LayerOptions& options) {
    check_parameters(system);
    check(input.machine, Given{"machine " + input.machine.name});
    check(system);
    check_input(input, options);
    const Needs own{.whole_experts = true, .sends = true};
    check_needs(input, system, system.own ? own : program_of(system).needs, options);
}

LayerResult simulate_layer(const LayerInput& input, const SystemSpec& system,
                           const LayerOptions& options) {
    check_layer(input, system, options);
    return run_job({input, system, options});
}

LayerResult simulate_layer(const LayerInput& input, std::string_view system,
                           const LayerOptions& options) {
    return simulate_layer(input, load_system(std::string(system)), options);
}

}  // namespace moehub
