/// MoE-Hub's tables (arXiv 2605.05888), in 7 nm as its figure.
#include "study/area_units.hpp"

#include "sim/hub/aau.hpp"

#include <algorithm>

namespace moehub {
namespace {

constexpr int kNode = 12;    // but for MoE-Hub,
constexpr int kHubNode = 7;  // which has this one
constexpr int kValid = 1;
constexpr int kAddress = 48;

constexpr int kRowId = 32;    // as st.rowsp carries it here (sim/hub/isa.hpp)
constexpr int kRegions = 64;  // of a GPU: one an expert, 64 of DeepSeek-V3's 256 on four GPUs. The
                              // simulator sets no limit
constexpr int kRegion = bits_for(kRegions);
constexpr int kRowBytes = 16;  // a row of up to 64 KiB: 32,768 elements of 2 B
constexpr int kTileRows = 8;   // a row block of up to 256 rows

AreaTable sram(const char* name, std::int64_t entries, int bits) {
    return {.proposal = "MoE-Hub",
            .name = name,
            .entries = entries,
            .entry_bits = bits,
            .node_nm = kHubNode};
}

AreaTable cam(const char* name, std::int64_t entries, int bits) {
    AreaTable table = sram(name, entries, bits);
    table.kind = CellKind::cam;
    return table;
}

}  // namespace

std::vector<AreaTable> moe_hub_tables(const Machine& machine) {
    const MoeHubSpec& hub = machine.moe_hub;
    const int peers = machine.gpus() - 1;
    const int line = static_cast<int>(machine.link.payload);
    const int address = bits_for(machine.gpu.hbm_capacity);
    const int line_offset = kRowBytes - bits_for(line);

    // A line's data, and a mask of its bytes that are there.
    AreaTable lines = sram("RPM lines", hub.rpm_entries, 8 * line + line);
    // What a store is compared with: region, RowID and line of the row, or, of an ordinary store,
    // the line's address, whichever is longer; which of the two; the priority. The timer is kept
    // beside: 8 bits of 1/256 of its length.
    const int key = std::max(kRegion + kRowId + line_offset, address - bits_for(line));
    AreaTable tags = cam("RPM tags", hub.rpm_entries, kValid + key + 1 + 1 + 8);
    lines.copies = tags.copies = peers;

    // What is spilled is what the table holds, 8 B: valid, region, RowID, and 25 bits of local row.
    AreaTable rat = sram("RAT", hub.rat_entries, static_cast<int>(8 * sim::AauSpec().entry));
    rat.banks = hub.rat_banks;
    // Region; base address, row size and row pointer, all of it in cells that compare.
    const AreaTable apt = cam("APT", kRegions, kValid + kRegion + address + kRowBytes + kRowId);
    // Both ends of a range of lines, and the row block that it stands for, one of 65,536.
    const AreaTable ranges =
        cam("DAM ranges", hub.dam_entries, kValid + 2 * (address - bits_for(line)) + 16);
    // Bytes that have come, and bytes at which it is ready.
    const AreaTable counters =
        sram("DAM counters", hub.dam_entries, 2 * (kTileRows + kRowBytes + 1));
    return {lines, tags, rat, apt, ranges, counters};
}

// DySHARP's tables (arXiv 2605.05607), in 12 nm as its figures.

namespace {

// The packet's own fields.
constexpr int kExpert = 16;
constexpr int kStage = 1;
constexpr int kTargets = 15;  // how many
constexpr int kIndex = 31;    // algebraic or layout, as in the AL table

constexpr int kShared = 18;     // address in 256 KiB of shared memory
constexpr int kRegister = 14;   // where the data is: one of 64 warps, one of 256 registers
constexpr int kTileTokens = 7;  // tiles of 128 tokens
constexpr int kRowLines = 9;    // of 64 KiB in packets of 128 B
constexpr int kColumns = 8;     // 256 blocks of a GEMM in a row of tiles
constexpr int kTopK = 6;        // up to 32 results of a token

AreaTable dysharp_on_gpu(const char* name, std::int64_t entries, int bits, int banks) {
    return {.proposal = "DySHARP",
            .name = name,
            .entries = entries,
            .entry_bits = bits,
            .banks = banks,
            .node_nm = kNode};
}

AreaTable in_switch(const char* name, const Machine& machine, int bits) {
    AreaTable table = dysharp_on_gpu(name, machine.dysharp.sum_packets, bits, 1);
    table.side = AreaSide::in_switch;
    table.copies = machine.switches > 0 ? machine.gpus_per_node : 0;
    return table;
}

}  // namespace

std::vector<AreaTable> dysharp_tables(const Machine& machine) {
    const DysharpSpec& spec = machine.dysharp;
    const int banks = spec.tlb_banks;  // the paper: all its tables have 16
    // An instruction, and one flit of its list of targets.
    const AreaTable queue = dysharp_on_gpu(
        "MultimemQ", spec.multimem_entries,
        kValid + kAddress + kStage + kTargets + kShared + kRegister + spec.flit_targets * kExpert,
        1);
    const AreaTable tlb =
        dysharp_on_gpu("AL TLB", spec.tlb_entries, kValid + kExpert + kIndex + kIndex, banks);
    // Expert and tile; lines that have come; blocks done of either GEMM.
    const AreaTable tiles = dysharp_on_gpu(
        "TS table", spec.ts_entries,
        kValid + kExpert + (kIndex - kTileTokens) + (kTileTokens + kRowLines + 1) + 2 * kColumns,
        banks);
    const AreaTable ready =
        dysharp_on_gpu("OR table", spec.or_entries, kValid + kIndex + kTopK, banks);

    // A switch that reduces for NVLS has partial sums and their addresses. That of DySHARP counts
    // for each how many have yet to answer, GPUs or targets: wider entries of the same banks.
    const int answers = spec.reduce_locally ? bits_for(machine.gpus_per_node + 1) : kTargets;
    AreaTable sums = in_switch("partial sums", machine, static_cast<int>(8 * machine.link.payload));
    AreaTable tags = in_switch("their tags", machine, kValid + kAddress);
    tags.kind = CellKind::cam;
    sums.added = tags.added = false;
    AreaTable counts = in_switch("their counts", machine, answers);
    counts.banks = 0;
    return {queue, tlb, tiles, ready, sums, tags, counts};
}

// CAIS's tables (arXiv 2605.05628), in 12 nm as its figures. It publishes the entries of a merge
// unit and what each holds; widths, and what a GPU needs to wait for a group's release, are
// choices.

namespace {

constexpr int kType = 1;        // load or reduction
constexpr int kState = 2;       // Load-Wait, Load-Ready, Reduction
constexpr int kTag = 16;        // a requester's, to be answered with
constexpr int kBlock = 32;      // index of a thread block in its grid
constexpr int kKernel = 4;      // that run at once
constexpr int kPhase = 1;       // before its launch, before its first access
constexpr int kGroups = 512;    // in a switch: blocks of one GPU of 132 SMs, four on each
constexpr int kBlocksOfSm = 4;  // of GEMMs, resident at a time
constexpr int kInFlight = 13;   // requests: up to 4224 of a GPU

AreaTable cais_on_gpu(const char* name, std::int64_t entries, int bits) {
    return {
        .proposal = "CAIS", .name = name, .entries = entries, .entry_bits = bits, .node_nm = kNode};
}

AreaTable at_ports(const char* name, const Machine& machine, int bits) {
    AreaTable table = cais_on_gpu(name, machine.cais.merge_entries, bits);
    table.side = AreaSide::in_switch;
    table.copies = machine.switches > 0 ? machine.gpus_per_node : 0;
    return table;
}

}  // namespace

std::vector<AreaTable> cais_tables(const Machine& machine) {
    const int gpus = machine.gpus_per_node;
    const int peers = gpus > 1 ? gpus - 1 : 0;
    // A block that waits: which group, what for, and whether its switches have released it.
    AreaTable waits = cais_on_gpu("blocks that wait", std::int64_t{machine.gpu.sms} * kBlocksOfSm,
                                  kValid + kKernel + kBlock + kPhase);
    waits.kind = CellKind::cam;
    const AreaTable released = [&] {
        AreaTable table =
            cais_on_gpu("their releases", waits.entries, bits_for(machine.switches + 1));
        table.banks = 0;  // beside them
        return table;
    }();

    // Throttling: loads and reductions in flight to each peer.
    AreaTable in_flight = cais_on_gpu("requests in flight", peers, 2 * kInFlight);
    in_flight.copies = peers > 0 ? 1 : 0;

    AreaTable tags = at_ports("merge tags", machine, kValid + kAddress + kType);
    tags.kind = CellKind::cam;
    const AreaTable lines =
        at_ports("merge lines", machine, static_cast<int>(8 * machine.link.payload));
    AreaTable state = at_ports("their requesters", machine,
                               kState + bits_for(gpus) + peers * (bits_for(gpus) + kTag));
    state.banks = 0;  // wider entries of the lines' banks
    AreaTable groups =
        cais_on_gpu("group sync", kGroups, kValid + kKernel + kBlock + kPhase + gpus);
    groups.kind = CellKind::cam;
    groups.side = AreaSide::in_switch;
    groups.copies = machine.switches > 0 ? 1 : 0;
    return {waits, released, in_flight, tags, lines, state, groups};
}

}  // namespace moehub
