/// CAIS's tables (arXiv 2605.05628), in 12 nm as its figures. It publishes the entries of a merge
/// unit and what each holds; widths, and what a GPU needs to wait for a group's release, are
/// choices.
#include "study/area_units.hpp"

namespace moehub {
namespace {

constexpr int kNode = 12;
constexpr int kValid = 1;
constexpr int kAddress = 48;
constexpr int kType = 1;        // load or reduction
constexpr int kState = 2;       // Load-Wait, Load-Ready, Reduction
constexpr int kTag = 16;        // a requester's, to be answered with
constexpr int kBlock = 32;      // index of a thread block in its grid
constexpr int kKernel = 4;      // that run at once
constexpr int kPhase = 1;       // before its launch, before its first access
constexpr int kGroups = 512;    // in a switch: blocks of one GPU of 132 SMs, four on each
constexpr int kBlocksOfSm = 4;  // of GEMMs, resident at a time
constexpr int kInFlight = 13;   // requests: up to 4224 of a GPU

AreaTable on_gpu(const char* name, std::int64_t entries, int bits) {
    return {
        .proposal = "CAIS", .name = name, .entries = entries, .entry_bits = bits, .node_nm = kNode};
}

AreaTable at_ports(const char* name, const Machine& machine, int bits) {
    AreaTable table = on_gpu(name, machine.cais.merge_entries, bits);
    table.side = AreaSide::in_switch;
    table.copies = machine.switches > 0 ? machine.gpus_per_node : 0;
    return table;
}

}  // namespace

std::vector<AreaTable> cais_tables(const Machine& machine) {
    const int gpus = machine.gpus_per_node;
    const int peers = gpus > 1 ? gpus - 1 : 0;
    // A block that waits: which group, what for, and whether its switches have released it.
    AreaTable waits = on_gpu("blocks that wait", std::int64_t{machine.gpu.sms} * kBlocksOfSm,
                             kValid + kKernel + kBlock + kPhase);
    waits.kind = CellKind::cam;
    const AreaTable released = [&] {
        AreaTable table = on_gpu("their releases", waits.entries, bits_for(machine.switches + 1));
        table.banks = 0;  // beside them
        return table;
    }();

    // Throttling: loads and reductions in flight to each peer.
    AreaTable in_flight = on_gpu("requests in flight", peers, 2 * kInFlight);
    in_flight.copies = peers > 0 ? 1 : 0;

    AreaTable tags = at_ports("merge tags", machine, kValid + kAddress + kType);
    tags.kind = CellKind::cam;
    const AreaTable lines =
        at_ports("merge lines", machine, static_cast<int>(8 * machine.link.payload));
    AreaTable state = at_ports("their requesters", machine,
                               kState + bits_for(gpus) + peers * (bits_for(gpus) + kTag));
    state.banks = 0;  // wider entries of the lines' banks
    AreaTable groups = on_gpu("group sync", kGroups, kValid + kKernel + kBlock + kPhase + gpus);
    groups.kind = CellKind::cam;
    groups.side = AreaSide::in_switch;
    groups.copies = machine.switches > 0 ? 1 : 0;
    return {waits, released, in_flight, tags, lines, state, groups};
}

}  // namespace moehub
