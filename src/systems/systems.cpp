// The tables of all systems and of their programs.
#include "systems/systems.hpp"

#include "model/records.hpp"
#include "systems/programs.hpp"

#include <moehub/presets.hpp>

namespace moehub {
namespace {

using namespace systems;

struct Runnable : ProgramRow {
    LayerResult (*run)(const Job&);  ///< in src/systems/moe, in the file of its name
};

const Runnable& program_of(const SystemSpec& system) {
    using enum Requirement;
    static const std::vector<Runnable> kPrograms = {
        {{"ideal", {"switch_copies"}, {computes}}, run_ideal},
        {{"torch", {}, {one_gpu, whole_experts, computes, plain}}, run_torch},
        {{"megatron-te", {}, {}}, run_megatron_te},
        {{"all-to-all", {"pxn"}, {whole_experts}}, run_all_to_all},
        {{"hierarchical", {}, {whole_experts}}, run_hierarchical},
        {{"fastermoe",
          {"group_gpus", "communication_sms"},
          {whole_experts, even_experts, spare_sms}},
         run_fastermoe},
        {{"tutel", {"chunks", "communication_sms"}, {whole_experts, even_experts, spare_sms}},
         run_tutel},
        {{"ccfuser", {"barrier"}, {one_node, whole_experts, computes, as_sent}}, run_ccfuser},
        {{"comet",
          {"chunks", "communication_sms"},
          {one_node, whole_experts, computes, spare_sms, as_sent}},
         run_comet},
        {{"flashdmoe",
          {"communication_sms", "sending_sms"},
          {one_node, whole_experts, computes, sends, spare_sms, one_kernel, as_sent}},
         run_flashdmoe},
        {{"nvls", {}, {one_node, in_switch, whole_experts}}, run_nvls},
        {{"deepep",
          {"communication_sms", "packet", "chunk_rows", "node_chunk_rows", "copy_share", "qp_rate",
           "host_waits", "barrier", "dispatch_element", "combine_element", "dispatch_start",
           "combine_start", "expert_format", "stores", "overlap_passes"},
          {whole_experts, spare_sms}},
         run_deepep},
        {{"deepep-ll", {"combine_element", "packet", "nic_only"}, {whole_experts}}, run_deepep_ll},
        {{"deepep-v2",
          {"communication_sms", "packet", "chunk_rows", "node_chunk_rows", "copy_share",
           "host_waits", "barrier", "combine_element", "dispatch_start", "combine_start"},
          {whole_experts, spare_sms}},
         run_deepep_v2},
        {{"hybrid-ep",
          {"communication_sms", "packet", "chunk_rows", "node_chunk_rows", "copy_share",
           "host_waits", "barrier", "combine_element", "dispatch_start", "combine_start"},
          {whole_experts, spare_sms}},
         run_hybrid_ep},
        {{"one-sided",
          {"combine_element", "dispatch_start", "combine_start", "once_per_node",
           "communication_sms"},
          {one_node, whole_experts}},
         run_one_sided},
        {{"mega-moe",
          {"tensor_share", "combine_element", "barrier", "dispatch_start"},
          {one_node, whole_experts, computes, one_kernel, as_sent}},
         run_mega_moe},
        {{"dysharp",
          {"hub", "switch_copies", "sending_sms", "combining_sms", "load_window"},
          {in_switch, whole_experts, computes, sends, combines, one_kernel, as_sent, one_piece}},
         run_dysharp},
        {{"dysharp-basic",
          {"hub", "switch_copies", "sending_sms", "combining_sms", "load_window"},
          {one_node, in_switch, whole_experts, sends, combines, one_piece}},
         run_dysharp_basic},
        {{"dysharp-comet",
          {"hub", "chunks", "sending_sms", "combining_sms", "load_window"},
          {one_node, in_switch, whole_experts, computes, sends, combines, as_sent, one_piece}},
         run_dysharp_comet},
        {{"moe-hub+dysharp",
          {"hub", "sending_sms", "combining_sms", "load_window"},
          {one_node, in_switch, whole_experts, computes, sends, combines, one_kernel, as_sent,
           one_piece}},
         run_moe_hub_dysharp},
        {{"moe-hub",
          {"stores", "sending_sms", "once_per_node", "communication_sms"},
          {computes, sends, as_sent}},
         run_moe_hub},
        {{"mh-base", {"stores", "sending_sms"}, {computes, sends, as_sent}}, run_mh_base},
    };
    return row_of(kPrograms, system, "unknown program {}");
}

}  // namespace

LayerResult systems::run_job(const Job& job) {
    return job.system.own ? run_own(job) : program_of(job.system).run(job);
}

/// In the order in which they are listed; presets/systems has one of each.
std::vector<SystemInfo> all_systems() {
    return infos_of(
        "ideal torch megatron-te all-to-all hierarchical fastermoe tutel ccfuser comet "
        "deepep deepep-single-qp dualpipe deepep-ll deepep-ll-rdma deepep-v2 hybrid-ep "
        "one-sided one-sided-relay flashdmoe mega-moe nvls dysharp dysharp-basic "
        "dysharp-comet fusion-only steps-only moe-hub moe-hub-relay mh-base mh-pkt "
        "mh-dep moe-hub+dysharp",
        "moe");
}

/// The software around it is every program's; the bound knows no host.
void systems::check_parameters(const SystemSpec& system) {
    const ProgramRow own{"of one's own", {"sending_sms"}, {}};
    const ProgramRow& program = system.own ? own : program_of(system);
    Names everyones = {"fused_activation", "expert_format", "dispatch_element"};
    if (program.name != "ideal") everyones.push_back("host");
    check_keys(system, program, everyones);
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
    const Needs own{Requirement::whole_experts, Requirement::sends};
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
