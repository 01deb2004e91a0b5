/// The field table of Machine, and how documents fill it.
#include "model/generation.hpp"
#include "model/records.hpp"

#include <moehub/error.hpp>

#include <algorithm>

namespace moehub {
namespace {

constexpr double kLongest = 1e12;  // ps: one second
constexpr double kFastest = 1e14;  // bytes/s

Fields fields_of(LinkSpec& link, Limits bandwidth, Need need) {
    constexpr Need optional = Need::optional;
    return {
        {"bandwidth", &link.bandwidth, Kind::rate, bandwidth, "raw flits, one direction", need},
        {"latency", &link.latency, Kind::time, {0, kLongest}, "one way, to the neighbour", need},
        {"flit", &link.flit, Kind::bytes, {1, 1 << 20}, "unit of transfer and credits", optional},
        {"payload", &link.payload, Kind::bytes, {16, 1 << 20}, "largest of a packet", optional},
        {"header_flits", &link.header_flits, Kind::count, {0, 1024}, "of a packet", optional},
        {"ack_flits", &link.ack_flits, Kind::count, {0, 1024}, "of a write's answer", optional},
        {"multicast_flits",
         &link.multicast_flits,
         Kind::count,
         {0, 1024},
         "more of an in-switch request",
         optional},
        {"credit_flits",
         &link.credit_flits,
         Kind::count,
         {0, 16},
         "of a credit update, every 16 ns",
         optional},
        {"request_channels",
         &link.request_channels,
         Kind::count,
         {1, 31},
         "virtual channels for requests",
         optional},
        {"buffer_flits",
         &link.buffer_flits,
         Kind::count,
         {1, 1 << 20},
         "per virtual channel",
         optional},
    };
}

Fields fields_of(HubSpec& hub) {
    return {
        {"store_latency",
         &hub.store_latency,
         Kind::time,
         {kShortest, kLongest},
         "SM to egress queue"},
        {"write_latency",
         &hub.write_latency,
         Kind::time,
         {kShortest, kLongest},
         "ingress to memory"},
        {"read_latency",
         &hub.read_latency,
         Kind::time,
         {kShortest, kLongest},
         "to memory and back"},
        {"staging_packets",
         &hub.staging_packets,
         Kind::count,
         {1, 1 << 20},
         "per uplink and virtual channel"},
    };
}

Fields fields_of(MoeHubSpec& hub) {
    return optional_fields({
        {"store_bytes", &hub.store_bytes, Kind::bytes, {16, 4096}, "of one store out of an SM"},
        {"rpm_entries", &hub.rpm_entries, Kind::count, {1, 1 << 20}, "packets per peer"},
        {"rpm_timer", &hub.rpm_timer, Kind::time, {0, kLongest}, "a line not full goes after"},
        {"rat_entries", &hub.rat_entries, Kind::count, {1, 1 << 28}, "rows the RAT remembers"},
        {"rat_banks", &hub.rat_banks, Kind::count, {1, 1024}, "of the RAT"},
        {"rat_lookup", &hub.rat_lookup, Kind::time, {0, kLongest}, "of one packet in its bank"},
        {"dam_entries", &hub.dam_entries, Kind::count, {1, 1 << 28}, "row blocks the DAM counts"},
        {"ready_latency",
         &hub.ready_latency,
         Kind::time,
         {0, kLongest},
         "acknowledgement to thread-block scheduler"},
    });
}

Fields fields_of(DysharpSpec& d) {
    constexpr Limits kTable = {1, 1 << 28};
    constexpr Limits kTime = {0, kLongest};
    return optional_fields({
        {"multimem_entries", &d.multimem_entries, Kind::count, kTable, "wait for their lists"},
        {"list_fetch", &d.list_fetch, Kind::time, kTime, "a list of targets, to the MultimemQ"},
        {"flit_targets", &d.flit_targets, Kind::count, {1, 1024}, "that an extension flit names"},
        {"replicate", &d.replicate, Kind::time, kTime, "that trimmed lists add in a switch"},
        {"sum_packets", &d.sum_packets, Kind::count, {1, 1 << 20}, "partial sums at a port"},
        {"reduce_locally", &d.reduce_locally, Kind::flag, {}, "before results leave their GPU"},
        {"tlb_entries", &d.tlb_entries, Kind::count, kTable, "of the AL TLB"},
        {"tlb_banks", &d.tlb_banks, Kind::count, {1, 1024}, "of the AL TLB"},
        {"tlb_lookup", &d.tlb_lookup, Kind::time, kTime, "of one packet in its bank"},
        {"ts_entries", &d.ts_entries, Kind::count, kTable, "tiles that are tracked"},
        {"or_entries", &d.or_entries, Kind::count, kTable, "tokens whose results are counted"},
        {"poll", &d.poll, Kind::time, kTime, "from a tracker's update to an SM"},
    });
}

Fields fields_of(CaisSpec& cais) {
    return optional_fields({
        {"merge_entries", &cais.merge_entries, Kind::count, {1, 1'000'000}, "packets at a port"},
        {"merge_timeout", &cais.merge_timeout, Kind::time, {0, kLongest}, "an entry goes after"},
    });
}

Fields fields_of(SwitchSpec& spec) {
    return {{"sum_packets",
             &spec.sum_packets,
             Kind::count,
             {1, 1 << 20},
             "partial sums that a port holds",
             Need::optional}};
}

Fields fields_of(CollectiveCosts& costs) {
    return {
        {"launch", &costs.launch, Kind::time, {0, kLongest}, "call to first byte"},
        {"hop", &costs.hop, Kind::time, {0, kLongest}, "hand-over between ring steps"},
        {"switch_launch", &costs.switch_launch, Kind::time, {0, kLongest}, "launch, in-switch"},
        {"outstanding_loads",
         &costs.outstanding_loads,
         Kind::count,
         {1, 1 << 30},
         "in-switch loads in flight per GPU, in packets"},
        {"switch_channels",
         &costs.switch_channels,
         Kind::count,
         {1, 4096},
         "thread blocks of an in-switch all-reduce",
         Need::optional},
        {"channel_copy",
         &costs.channel_copy,
         Kind::rate,
         {2 * kSlowest, 1e15},
         "into and out of switched memory, each block",
         Need::optional},
    };
}

/// `gpu = "h100-sxm"` and `[gpu] preset = "h100-sxm"` both take over that whole GPU.
bool names_gpu(const Entry& entry) {
    return (entry.key == "gpu" && entry.type != Entry::Type::table) || entry.key == "gpu.preset";
}

void take_gpu(Machine& machine, const Document& document, Entry entry, Given& given) {
    entry.key = "gpu.preset";
    apply({{entry.key, &machine.gpu_name, Kind::text, {}, ""}}, entry, document.origin, given);
    machine.gpu_name = resolved(document, machine.gpu_name);
    try {
        machine.gpu = load_gpu(machine.gpu_name);
    } catch (const InputError& error) {
        throw InputError(at(document.origin, entry) + error.what());
    }
    for (const Field& field : fields_of(machine.gpu))
        given.where["gpu." + field.key] = line_of(document.origin, entry);
}

Machine from_chain(std::vector<Document> chain, const Overrides& overrides) {
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

}  // namespace

Fields fields_of(Machine& m) {
    constexpr Need optional = Need::optional;
    Fields fields{
        {"name", &m.name, Kind::text, {}, "preset or file", optional},
        {"title", &m.title, Kind::text, {}, "for moehub list", optional},
        {"nodes", &m.nodes, Kind::count, {1, kMostGpus}, "joined by NICs", optional},
        {"gpus_per_node", &m.gpus_per_node, Kind::count, {1, 65536}, "joined by links"},
        {"max_gpus", &m.max_gpus, Kind::count, {0, kMostGpus}, "0: those above", optional},
        {"topology",
         choice(m.topology, {"switched", "mesh"}),
         Kind::choice,
         {},
         "switched or mesh (no switches)",
         optional},
        {"switches", &m.switches, Kind::count, {0, 255}, "per node", optional},
        {"switches_down", &m.switches_down, Kind::count, {0, 254}, "out of service", optional},
        {"in_switch", &m.in_switch, Kind::flag, {}, "switches multicast and reduce", optional},
        {"start_spread",
         &m.start_spread,
         Kind::time,
         {0, kLongest},
         "last GPU starts later",
         optional},
        {"gpu_spread", &m.gpu_spread, Kind::number, {0, 0.9}, "last GPU's clock behind", optional},
        {"leaf_nodes",
         &m.leaf_nodes,
         Kind::count,
         {0, 65536},
         "that a leaf joins, 0: all",
         optional},
        {"leaf_uplinks", &m.leaf_uplinks, Kind::count, {0, 65536}, "each a NIC's rate", optional},
        {"spines", &m.spines, Kind::count, {0, 65536}, "between the rails' leaves", optional},
        {"spine_latency", &m.spine_latency, Kind::time, {0, kLongest}, "leaf to spine", optional},
        {"adaptive_routing", &m.adaptive_routing, Kind::flag, {}, "of leaves, by packet", optional},
        {"sharp", &m.sharp, Kind::flag, {}, "leaves and spines add up", optional},
        {"gpu.preset", &m.gpu_name, Kind::text, {}, "where the GPU's figures start", optional},
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

Machine load_machine(const std::string& name_or_path, const Overrides& overrides) {
    return from_chain(load_chain("machines", name_or_path), overrides);
}

Machine parse_machine(std::string_view text, const std::string& origin) {
    return from_chain(parse_chain("machines", text, origin), {});
}

std::string to_toml(const Machine& machine) {
    Machine copy = machine;
    return print_toml(without_absent_kernels(fields_of(copy), "gpu."));
}

std::string to_json(const Machine& machine) {
    Machine copy = machine;
    return print_json(without_absent_kernels(fields_of(copy), "gpu."));
}

}  // namespace moehub
