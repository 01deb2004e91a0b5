#include "systems/needs.hpp"

#include "sim/kernels/kernels.hpp"

#include <algorithm>

namespace moehub::systems {
namespace {

/// The RPM's least lines for a peer: with fewer, they wait for one another, which a row that
/// travels as one train does not show.
constexpr int kLeastLines = 8;

/// Experts on a rank, copies included.
struct Slots {
    std::size_t fewest = 0;
    std::size_t most = 0;
    std::size_t all = 0;
};

Slots slots_of(const Placement& placement) {
    Slots slots{placement.hosts.size(), 0, 0};
    for (const std::vector<int>& experts : experts_by_rank(placement)) {
        slots.fewest = std::min(slots.fewest, experts.size());
        slots.most = std::max(slots.most, experts.size());
        slots.all += experts.size();
    }
    return slots;
}

std::string why_uneven(const Placement& placement) {
    const Slots slots = slots_of(placement);
    const auto ranks = static_cast<std::size_t>(placement.ranks);
    return fmt::format(
        "it needs as many experts on every GPU, found {} to {} on each of {} ({} experts, {} "
        "copies); so many more copies make it even: {}",
        slots.fewest, slots.most, ranks, placement.hosts.size(), slots.all - placement.hosts.size(),
        slots.most * ranks - slots.all);
}

/// Why the card cannot compute experts in the format; empty: it can.
std::string missing_kernel(const Gpu& gpu, NumberFormat format) {
    if (gpu.library == "torch")
        return format == NumberFormat::nvfp4 || format == NumberFormat::w4a16
                   ? fmt::format("experts in {} need a serving engine's kernels, found torch's",
                                 name_of(format))
                   : "";
    if (moe_of(gpu.libraries.at(gpu.library), format).start > 0) return "";
    return fmt::format("kernel library {} has no MoE kernel in {} for this card", gpu.library,
                       name_of(format));
}

/// Checks what a program needs of the machine, of experts and their copies.
void check_sizes(const LayerInput& in, const SystemSpec& system, const Needs& needs,
                 const LayerOptions& options) {
    using enum Requirement;
    if (needs.has(one_gpu) && in.machine.gpus() > 1)
        cannot_run(system, "it runs on one GPU, found {}", in.machine.gpus());
    if (needs.has(one_node) && !system.once_per_node && in.machine.nodes > 1)
        cannot_run(system, "it works inside one node, found {} nodes", in.machine.nodes);
    if (system.nic_only && in.machine.nic.bandwidth == 0)
        cannot_run(system, "its rows take NICs, and {} has none", in.machine.name);
    if (needs.has(in_switch) && system.switch_copies) check_switches(in.machine, system);
    if (needs.has(whole_experts) && options.tensor_parallel > 1)
        cannot_run(system, "experts are whole, found {} GPUs for each", options.tensor_parallel);
    const Slots slots = slots_of(in.placement);
    if (needs.has(even_experts) && slots.fewest < slots.most)
        cannot_run(system, "{}", why_uneven(in.placement));
    if (!system.once_per_node) return;
    if (options.tensor_parallel > 1)
        cannot_run(system, "once_per_node: experts are whole, found {} GPUs for each",
                   options.tensor_parallel);
    if (system.communication_sms < 1 || system.communication_sms >= in.machine.gpu.sms)
        cannot_run(system, "once_per_node: rows are passed on by {} SMs, allowed: 1 to {}",
                   system.communication_sms, in.machine.gpu.sms - 1);
}

/// Checks what kernels compute, and when.
void check_kernels(const LayerInput& in, const SystemSpec& system, const Needs& needs,
                   const LayerOptions& options) {
    using enum Requirement;
    if (needs.has(as_sent) && system.narrow_experts() != (system.dispatch_element <= 1))
        cannot_run(system,
                   "its experts read rows as they are sent: found dispatch_element {} and {} "
                   "experts",
                   system.dispatch_element, name_of(system.expert_format));
    if (needs.has(one_kernel) && !system.fused_activation)
        cannot_run(system, "fused_activation: found false, allowed true: it is one kernel");
    if (needs.has(plain) &&
        (system.fused_activation || system.narrow_experts() || system.dispatch_element < 2))
        cannot_run(system, "it computes in BF16 and fuses nothing");
    const int lines = in.machine.moe_hub.rpm_entries;
    if (system.stores == StoreQueue::rpm && options.grain == Grain::row && lines < kLeastLines)
        cannot_run(system,
                   "moe_hub.rpm_entries: found {}, allowed {} or more in row grain, where "
                   "fewer do not act; packet grain has them",
                   lines, kLeastLines);
    if (needs.has(one_piece) &&
        (options.region_rows > 0 || options.page_rows > 0 || options.page_pool > 0))
        cannot_run(system,
                   "its regions have room for every token, in one piece: no --region-rows, no "
                   "pages");
    if (needs.has(computes) && !options.compute)
        cannot_run(system, "its rows do not move in a step of their own");
}

}  // namespace

void check_switches(const Machine& machine, const SystemSpec& system) {
    if (!(machine.in_switch && machine.topology == NodeTopology::switched))
        cannot_run(system, "the switches of {} do not multicast and reduce", machine.name);
    if (machine.link.ack_flits == 0)
        cannot_run(system,
                   "link.ack_flits: found 0, allowed 1 or more: switches merge acknowledgements");
}

void check_sms(const Machine& machine, const SystemSpec& system, const Needs& needs) {
    using enum Requirement;
    const int sms = machine.gpu.sms;
    if (needs.has(sends) && system.sending_sms < 1)
        cannot_run(system, "sending_sms: found 0, allowed: 1 or more");
    if (needs.has(combines) && system.combining_sms < 1)
        cannot_run(system, "combining_sms: found 0, allowed: 1 or more");
    if (needs.has(combines) && system.sending_sms + system.combining_sms >= sms)
        cannot_run(system, "{} SMs send and {} combine, and a GPU of {} has {}", system.sending_sms,
                   system.combining_sms, machine.name, sms);
    if (needs.has(spare_sms) && system.communication_sms < 1)
        cannot_run(system, "communication_sms: found 0, allowed: 1 or more");
    if (needs.has(spare_sms) && system.communication_sms >= sms)
        cannot_run(system, "communication holds {} SMs, and a GPU of {} has {}",
                   system.communication_sms, machine.name, sms);
}

void check_needs(const LayerInput& in, const SystemSpec& system, const Needs& needs,
                 const LayerOptions& options) {
    if (const std::string why = missing_kernel(in.machine.gpu, system.expert_format); !why.empty())
        cannot_run(system, "{}", why);
    if (system.overlap_passes)
        cannot_run(system,
                   "it overlaps a forward with a backward pass: whole models in training (moehub "
                   "model --training)");
    check_sizes(in, system, needs, options);
    check_sms(in.machine, system, needs);
    check_kernels(in, system, needs, options);
}

}  // namespace moehub::systems
