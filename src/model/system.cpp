/// The field table of SystemSpec: a new field is one member in <moehub/system.hpp> and one row
/// here.
#include "model/records.hpp"

namespace moehub {
Fields fields_of(SystemSpec& s) {
    using enum FieldKind;
    constexpr Limits kElement = {0.5, 8};
    Fields fields = {
        {"name", &s.name, text, {}, "of the system"},
        {"title", &s.title, text, {}, "one line"},
        {"program", &s.program, text, {}, "that its GPUs run"},
        one_of("host", s.host, {"graph", "eager"}, "issues kernels"),
        {"fused_activation", &s.fused_activation, flag, {}, "at the end of the first GEMM"},
        one_of("stores", s.stores, {"per_peer", "fifo", "rpm"}, "how they wait"),
        one_of("hub", s.hub, {"moe-hub", "dysharp"}, "its units"),
        {"switch_copies", &s.switch_copies, flag, {}, "rows, and add results; false: one by one"},
        {"communication_sms", &s.communication_sms, count, {0, 4096}, "held by communication"},
        {"sending_sms", &s.sending_sms, count, {0, 4096}, "that read rows and store them"},
        {"combining_sms", &s.combining_sms, count, {0, 4096}, "that load sums of results"},
        {"load_window", &s.load_window, bytes, {128, 1 << 24}, "that such an SM has in flight"},
        {"packet", &s.packet, bytes, {0, 1 << 20}, "largest payload; 0: the link's"},
        {"chunk_rows", &s.chunk_rows, count, {1, 65536}, "in one store to a peer's queue"},
        {"node_chunk_rows", &s.node_chunk_rows, count, {1, 65536}, "tokens that cross as one"},
        {"nic_only", &s.nic_only, flag, {}, "rows take NICs inside a node, too"},
        {"qp_rate", &s.qp_rate, rate, {0, 1e15}, "to one GPU of another node; 0: the NIC's"},
        {"copy_share", &s.copy_share, number, {0.01, 1}, "of an SM's rate in plain copies"},
        {"once_per_node", &s.once_per_node, flag, {}, "rows cross, and their node passes them on"},
        {"pxn", &s.pxn, flag, {}, "rows leave a node by the NIC of their target's rail"},
        {"group_gpus", &s.group_gpus, count, {1, 4096}, "that exchange rows in one step"},
        {"chunks", &s.chunks, count, {1, 1024}, "pieces in which rows travel"},
        {"host_waits", &s.host_waits, flag, {}, "for the counts, before it goes on"},
        {"tensor_share", &s.tensor_share, number, {0.01, 1}, "of a plain GEMM's rate"},
        one_of("expert_format", s.expert_format, {"bf16", "fp8", "fp8-block", "nvfp4", "w4a16"},
               "matrices of the experts"),
        {"dispatch_element", &s.dispatch_element, number, kElement, "bytes on the way out"},
        {"combine_element", &s.combine_element, number, kElement, "bytes on the way back"},
        {"dispatch_start", &s.dispatch_start, time, kTime, "launch to first packet"},
        {"combine_start", &s.combine_start, time, kTime, "launch to first packet"},
        {"overlap_passes", &s.overlap_passes, flag, {}, "forward beside backward, training"},
        {"coordinate", &s.coordinate, flag, {}, "thread blocks of all GPUs, by switches"},
        {"fuse_blocks", &s.fuse_blocks, flag, {}, "kernels that depend on each other by blocks"},
        {"separate_channels", &s.separate_channels, flag, Limits(),
         "loads do not wait behind reductions"},
        {"barrier", &s.barrier, time, kTime, "of all GPUs, beyond its packets"},
    };
    for (Field& field : fields)
        if (field.key != "program") field.need = Need::optional;
    return fields;
}

SystemSpec with_software(SystemSpec system, const Software& software) {
    if (system.program != "ideal") system.host = software.host.value_or(system.host);
    system.fused_activation = software.fused_activation.value_or(system.fused_activation);
    if (!software.fp8) return system;
    system.expert_format = *software.fp8 ? NumberFormat::fp8 : NumberFormat::bf16;
    system.dispatch_element = *software.fp8 ? 1 : 2;
    return system;
}

std::string software_words(const SystemSpec& system) {
    std::string words = system.host == HostMode::eager ? "eager" : "graph";
    if (system.fused_activation) words += ", fused";
    if (system.expert_format == NumberFormat::nvfp4) return words + ", NVFP4";
    if (system.narrow_experts()) return words + ", FP8";
    return system.dispatch_element <= 1 ? words + ", FP8 rows" : words;
}

std::vector<std::string> changed_keys(const SystemSpec& system) {
    SystemSpec given = system;
    SystemSpec unset;
    const Fields now = fields_of(given);
    const Fields before = fields_of(unset);
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < now.size(); ++i) {
        const bool parameter = now[i].kind != FieldKind::text;
        if (parameter && print_toml({now[i]}) != print_toml({before[i]}))
            keys.push_back(now[i].key);
    }
    return keys;
}

}  // namespace moehub
