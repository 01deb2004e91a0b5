/// The field tables of Machine and of what collective libraries cost on it, how documents fill
/// them, and a machine of another size.
#include "base/input_error.hpp"
#include "model/records.hpp"

#include <moehub/presets.hpp>

#include <algorithm>

namespace moehub {
namespace {

constexpr double kFastest = 1e14;  // bytes/s
constexpr Limits kStep = {kShortest, kTime.max};
constexpr Limits kRate = {1e8, 1e15};  // slower ones make 1 TB last longer than an int64 of ps
constexpr Limits kCopyRate = {2 * kSlowest, 1e15};
constexpr Limits kLoads = {1, 1 << 30};
constexpr Limits kChannels = {1, 4096};
constexpr Limits kPackets = {1, 1 << 20};

Fields fields_of(LinkSpec& link, Limits bandwidth, Need need) {
    using enum FieldKind;
    Fields fields = {
        {"bandwidth", &link.bandwidth, rate, bandwidth, "raw flits, one direction", need},
        {"latency", &link.latency, time, kTime, "one way, to the neighbour", need},
    };
    Fields format = optional_fields({
        {"flit", &link.flit, bytes, {1, 1 << 20}, "unit of transfer and credits"},
        {"payload", &link.payload, bytes, {16, 1 << 20}, "largest of a packet"},
        {"header_flits", &link.header_flits, count, {0, 1024}, "of a packet"},
        {"ack_flits", &link.ack_flits, count, {0, 1024}, "of a write's answer"},
        {"multicast_flits",
         &link.multicast_flits,
         count,
         {0, 1024},
         "more of an in-switch request"},
        {"credit_flits", &link.credit_flits, count, {0, 16}, "of a credit update, every 16 ns"},
        {"request_channels",
         &link.request_channels,
         count,
         {1, 31},
         "virtual channels for requests"},
        {"buffer_flits", &link.buffer_flits, count, {1, 1 << 20}, "per virtual channel"},
    });
    nest(fields, "", std::move(format));
    return fields;
}

Fields fields_of(HubSpec& h) {
    using enum FieldKind;
    return {
        {"store_latency", &h.store_latency, time, kStep, "SM to egress queue"},
        {"write_latency", &h.write_latency, time, kStep, "ingress to memory"},
        {"read_latency", &h.read_latency, time, kStep, "to memory and back"},
        {"staging_packets", &h.staging_packets, count, kPackets, "per uplink and virtual channel"},
    };
}

Fields fields_of(MoeHubSpec& h) {
    using enum FieldKind;
    return optional_fields({
        {"store_bytes", &h.store_bytes, bytes, {16, 4096}, "of one store out of an SM"},
        {"rpm_entries", &h.rpm_entries, count, {1, 1 << 20}, "packets per peer"},
        {"rpm_timer", &h.rpm_timer, time, kTime, "a line not full goes after"},
        {"rat_entries", &h.rat_entries, count, {1, 1 << 28}, "rows the RAT remembers"},
        {"rat_banks", &h.rat_banks, count, {1, 1024}, "of the RAT"},
        {"rat_lookup", &h.rat_lookup, time, kTime, "of one packet in its bank"},
        {"dam_entries", &h.dam_entries, count, {1, 1 << 28}, "row blocks the DAM counts"},
        {"ready_latency", &h.ready_latency, time, kTime,
         "acknowledgement to thread-block scheduler"},
    });
}

Fields fields_of(DysharpSpec& d) {
    using enum FieldKind;
    constexpr Limits kTable = {1, 1 << 28};
    return optional_fields({
        {"multimem_entries", &d.multimem_entries, count, kTable, "wait for their lists"},
        {"list_fetch", &d.list_fetch, time, kTime, "a list of targets, to the MultimemQ"},
        {"flit_targets", &d.flit_targets, count, {1, 1024}, "that an extension flit names"},
        {"replicate", &d.replicate, time, kTime, "that trimmed lists add in a switch"},
        {"sum_packets", &d.sum_packets, count, {1, 1 << 20}, "partial sums at a port"},
        {"reduce_locally", &d.reduce_locally, flag, {}, "before results leave their GPU"},
        {"tlb_entries", &d.tlb_entries, count, kTable, "of the AL TLB"},
        {"tlb_banks", &d.tlb_banks, count, {1, 1024}, "of the AL TLB"},
        {"tlb_lookup", &d.tlb_lookup, time, kTime, "of one packet in its bank"},
        {"ts_entries", &d.ts_entries, count, kTable, "tiles that are tracked"},
        {"or_entries", &d.or_entries, count, kTable, "tokens whose results are counted"},
        {"poll", &d.poll, time, kTime, "from a tracker's update to an SM"},
    });
}

Fields fields_of(CaisSpec& cais) {
    using enum FieldKind;
    return optional_fields({
        {"merge_entries", &cais.merge_entries, count, {1, 1'000'000}, "packets at a port"},
        {"merge_timeout", &cais.merge_timeout, time, kTime, "an entry goes after"},
    });
}

Fields fields_of(SwitchSpec& spec) {
    using enum FieldKind;
    return optional_fields(
        {{"sum_packets", &spec.sum_packets, count, kPackets, "partial sums that a port holds"}});
}

Fields fields_of(CollectiveCosts& costs) {
    using enum FieldKind;
    constexpr Need optional = Need::optional;
    return {
        {"launch", &costs.launch, time, kTime, "call to first byte"},
        {"hop", &costs.hop, time, kTime, "hand-over between ring steps"},
        {"switch_launch", &costs.switch_launch, time, kTime, "launch, in-switch"},
        {"outstanding_loads", &costs.outstanding_loads, count, kLoads,
         "in-switch loads in flight per GPU, in packets"},
        {"switch_channels", &costs.switch_channels, count, kChannels,
         "thread blocks of an in-switch all-reduce", optional},
        {"channel_copy", &costs.channel_copy, rate, kCopyRate,
         "into and out of switched memory, each block", optional},
    };
}

Fields fields_of(ProtocolCosts& costs) {
    using enum FieldKind;
    return {
        {"hop", &costs.hop, time, kTime, "on the way, beyond the fabric's"},
        {"slice", &costs.slice, time, kTime, "a block's, to hand over"},
        {"rate", &costs.rate, rate, kRate, "of payload, one channel"},
    };
}

/// `gpu = "h100-sxm"` and `[gpu] preset = "h100-sxm"` both take over that whole GPU.
bool names_gpu(const Entry& entry) {
    return (entry.key == "gpu" && entry.type != Entry::Type::table) || entry.key == "gpu.preset";
}

void take_gpu(Machine& machine, const Document& document, Entry entry, Given& given) {
    entry.key = "gpu.preset";
    apply({{entry.key, &machine.gpu_name, FieldKind::text, {}, ""}}, entry, document.origin, given);
    machine.gpu_name = resolved(document, machine.gpu_name);
    try {
        machine.gpu = load_gpu(machine.gpu_name);
    } catch (const InputError& error) {
        throw InputError(at(document.origin, entry) + error.what());
    }
    for (const Field& field : fields_of(machine.gpu))
        given.where["gpu." + field.key] = line_of(document.origin, entry);
}

}  // namespace

Fields fields_of(NcclCosts& nccl) {
    using enum FieldKind;
    Fields fields{
        {"start", &nccl.start, time, kTime, "launch to first store, last store to end"},
        {"blocks", &nccl.blocks, time, kTime, "more with several blocks"},
        {"channels", &nccl.channels, count, {1, 4096}, "of a ring"},
        {"ll128_used", &nccl.ll128_used, flag, {}, "between LL and Simple"},
        {"int8_sum", &nccl.int8_sum, number, {0.1, 1}, "of a channel's rate"},
        {"peer_channels", &nccl.peer_channels, count, {1, 4096}, "of sends and receives"},
        {"peer_hop", &nccl.peer_hop, time, kTime, "of sends by Simple"},
        {"peer_rate", &nccl.peer_rate, rate, kRate, "of each"},
        {"peer_copy", &nccl.peer_copy, rate, kRate, "of each, to the user's buffer"},
        {"switch_start", &nccl.switch_start, time, kTime, "of an in-switch all-reduce"},
        {"switch_pair", &nccl.switch_pair, time, kTime, "more of it, of n squared GPUs"},
        {"switch_wave", &nccl.switch_wave, time, kTime, "between waves of its chunks"},
        {"switch_rate", &nccl.switch_rate, rate, kRate, "NCCL's estimate, a GPU's channel"},
        {"switch_efficiency", &nccl.switch_efficiency, number, {0.01, 1}, "of it"},
        {"net_rings", &nccl.net_rings, count, {1, 4096}, "between nodes, a NIC each"},
        {"net_hop", &nccl.net_hop, time, kTime, "of what goes through NICs"},
        {"net_start", &nccl.net_start, time, kTime, "more, of a call between nodes"},
        {"one_shot_start", &nccl.one_shot_start, time, kTime, "TensorRT-LLM's kernel"},
        {"one_shot_memory", &nccl.one_shot_memory, rate, kRate, "buffers read and cleared"},
    };
    nest(fields, "ll.", fields_of(nccl.ll));
    nest(fields, "ll128.", fields_of(nccl.ll128));
    nest(fields, "simple.", fields_of(nccl.simple));
    return optional_fields(std::move(fields));
}

Fields fields_of(Machine& m) {
    using enum FieldKind;
    constexpr Need optional = Need::optional;
    Fields fields{
        {"name", &m.name, text, {}, "preset or file", optional},
        {"title", &m.title, text, {}, "for moehub list", optional},
        {"nodes", &m.nodes, count, {1, kMostGpus}, "joined by NICs", optional},
        {"gpus_per_node", &m.gpus_per_node, count, {1, 65536}, "joined by links"},
        {"max_gpus", &m.max_gpus, count, {0, kMostGpus}, "0: those above", optional},
        one_of("topology", m.topology, {"switched", "mesh"}, "switched or mesh (no switches)",
               optional),
        {"switches", &m.switches, count, {0, 255}, "per node", optional},
        {"switches_down", &m.switches_down, count, {0, 254}, "out of service", optional},
        {"in_switch", &m.in_switch, flag, {}, "switches multicast and reduce", optional},
        {"start_spread", &m.start_spread, time, kTime, "last GPU starts later", optional},
        {"gpu_spread", &m.gpu_spread, number, {0, 0.9}, "last GPU's clock behind", optional},
        {"leaf_nodes", &m.leaf_nodes, count, {0, 65536}, "that a leaf joins, 0: all", optional},
        {"leaf_uplinks", &m.leaf_uplinks, count, {0, 65536}, "each a NIC's rate", optional},
        {"spines", &m.spines, count, {0, 65536}, "between the rails' leaves", optional},
        {"spine_latency", &m.spine_latency, time, kTime, "leaf to spine", optional},
        {"adaptive_routing", &m.adaptive_routing, flag, {}, "of leaves, by packet", optional},
        {"sharp", &m.sharp, flag, {}, "leaves and spines add up", optional},
        {"gpu.preset", &m.gpu_name, text, {}, "where the GPU's figures start", optional},
    };
    nest(fields, "gpu.", fields_of(m.gpu));
    // What a generation gives, a GPU's own file has taken.
    std::erase_if(fields, [](const Field& field) { return field.key == "gpu.generation"; });
    nest(fields, "link.", fields_of(m.link, {kSlowest, kFastest}, Need::required));
    nest(fields, "switch.", fields_of(m.switch_spec));
    nest(fields, "hub.", fields_of(m.hub));
    nest(fields, "moe_hub.", fields_of(m.moe_hub));
    nest(fields, "dysharp.", fields_of(m.dysharp));
    nest(fields, "cais.", fields_of(m.cais));
    nest(fields, "nic.", fields_of(m.nic, {0, kFastest}, Need::optional));
    nest(fields, "collective.", fields_of(m.collective));
    nest(fields, "nccl.", fields_of(m.nccl));
    return fields;
}

Machine machine_from(std::vector<Document> chain, const Overrides& overrides) {
    Machine machine;
    machine.name = chain.back().name;
    Fields fields;
    const auto find_fields = [&] {  // again when a GPU is taken: it has libraries of its own
        for (const Document& document : chain) add_libraries(machine.gpu, document.entries, "gpu.");
        fields = fields_of(machine);
    };
    find_fields();
    Given given{chain.back().origin};
    const auto take = [&](const Document& document, const Entry& entry) {
        if (!names_gpu(entry)) return apply(fields, entry, document.origin, given);
        take_gpu(machine, document, entry, given);
        find_fields();
    };
    for (Document& document : chain) {
        std::stable_partition(document.entries.begin(), document.entries.end(), names_gpu);
        for (const Entry& entry : document.entries) take(document, entry);
    }
    for (const std::string& text : overrides) take({"--set", "", "", {}, ""}, read_override(text));
    require_all(fields, given);
    check(machine, given);
    return machine;
}

Machine with_gpus(const Machine& machine, int gpus) {
    const int limit = machine.max_gpus > 0 ? machine.max_gpus : machine.gpus();
    if (gpus < 1 || gpus > limit)
        throw input_error("{}: found {} GPUs, allowed 1 to {}", machine.name, gpus, limit);
    Machine sized = machine;
    const bool cluster = machine.nic.bandwidth > 0;
    if (!cluster || gpus <= machine.gpus_per_node) {
        sized.nodes = 1;
        sized.gpus_per_node = gpus;
        return sized;
    }
    if (gpus % machine.gpus_per_node != 0)
        throw input_error("{}: found {} GPUs, allowed up to {} or a multiple of it", machine.name,
                          gpus, machine.gpus_per_node);
    sized.nodes = gpus / machine.gpus_per_node;
    return sized;
}

}  // namespace moehub
