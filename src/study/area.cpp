#include "study/area.hpp"

#include "sim/hub/aau.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kValid = 1;
constexpr int kAddress = 48;

/// Bits that tell so many things apart; none for a single one.
constexpr int bits_for(std::int64_t things) {
    int bits = 0;
    while (bits < 62 && std::int64_t{1} << bits < things) ++bits;
    return bits;
}

/// A proposal's tables on one GPU or in one switch, in the process of its paper's figure.
struct Place {
    const char* proposal;
    int node_nm;
    AreaSide side = AreaSide::gpu;
};

/// One SRAM or, compared with as a whole, CAM.
struct TableSize {
    const char* name;
    std::int64_t entries;
    int bits;  ///< bits of an entry
    CellKind kind;
    int banks = 1;
    int copies = 1;
    bool added = true;

    TableSize in_banks(int count) const {
        return {name, entries, bits, kind, count, copies, added};
    }
    TableSize times(int count) const { return {name, entries, bits, kind, banks, count, added}; }
    TableSize there_today() const { return {name, entries, bits, kind, banks, copies, false}; }
};

TableSize sram(const char* name, std::int64_t entries, int bits) {
    return {name, entries, bits, CellKind::sram};
}

TableSize cam(const char* name, std::int64_t entries, int bits) {
    return {name, entries, bits, CellKind::cam};
}

void add_tables(std::vector<AreaTable>& tables, const Place& place,
                const std::vector<TableSize>& sizes) {
    for (const TableSize& one : sizes)
        if (one.copies > 0)
            tables.push_back(with_area({.proposal = place.proposal,
                                        .side = place.side,
                                        .name = one.name,
                                        .kind = one.kind,
                                        .copies = one.copies,
                                        .entries = one.entries,
                                        .entry_bits = one.bits,
                                        .banks = one.banks,
                                        .added = one.added,
                                        .node_nm = place.node_nm}));
}

int ports_of(const Machine& machine) {
    return machine.switches > 0 ? machine.gpus_per_node : 0;
}

// MoE-Hub's tables (arXiv 2605.05888), in 7 nm as its figure: RPM, AAU and DAM of a GPU's hub.

constexpr int kRowId = 32;    // as st.rowsp carries it here (sim/hub/isa.hpp)
constexpr int kRegions = 64;  // regions of a GPU: one an expert, 64 of DeepSeek-V3's 256 on four
                              // GPUs. The simulator sets no limit
constexpr int kRegion = bits_for(kRegions);
constexpr int kRowBytes = 16;  // a row of up to 64 KiB: 32,768 elements of 2 B
constexpr int kTileRows = 8;   // a row block of up to 256 rows

void add_moe_hub(const Machine& machine, std::vector<AreaTable>& tables) {
    const MoeHubSpec& hub = machine.moe_hub;
    const int peers = machine.gpus() - 1;
    const int line = static_cast<int>(machine.link.payload);
    const int address = bits_for(machine.gpu.hbm_capacity);
    const int line_offset = kRowBytes - bits_for(line);
    // What a store is compared with: region, RowID and line of the row, or, of an ordinary store,
    // the line's address, whichever is longer.
    const int key = std::max(kRegion + kRowId + line_offset, address - bits_for(line));
    add_tables(
        tables, {"MoE-Hub", 7},
        {// A line's data, and a mask of its bytes that are there.
         sram("RPM lines", hub.rpm_entries, 8 * line + line).times(peers),
         // The key; which of the two it is; the priority. The timer is kept beside: 8 bits of 1/256
         // of its length.
         cam("RPM tags", hub.rpm_entries, kValid + key + 1 + 1 + 8).times(peers),
         // What is spilled is what the table holds, 8 B: valid, region, RowID, and 25 bits of local
         // row.
         sram("RAT", hub.rat_entries, static_cast<int>(8 * sim::AauSpec().entry))
             .in_banks(hub.rat_banks),
         // Region; base address, row size and row pointer, all of it in cells that compare.
         cam("APT", kRegions, kValid + kRegion + address + kRowBytes + kRowId),
         // Both ends of a range of lines, and the row block that it stands for, one of 65,536.
         cam("DAM ranges", hub.dam_entries, kValid + 2 * (address - bits_for(line)) + 16),
         // Bytes that have come, and bytes at which it is ready.
         sram("DAM counters", hub.dam_entries, 2 * (kTileRows + kRowBytes + 1))});
}

// DySHARP's tables (arXiv 2605.05607), in 12 nm as its figures: MultimemQ, AL TLB and trackers of a
// GPU; reductions in a switch.

// The packet's own fields.
constexpr int kExpert = 16;
constexpr int kStage = 1;
constexpr int kTargets = 15;  // how many targets there are at most
constexpr int kIndex = 31;    // index, algebraic or layout, as in the AL table

constexpr int kShared = 18;     // address in 256 KiB of shared memory
constexpr int kRegister = 14;   // where the data is: one of 64 warps, one of 256 registers
constexpr int kTileTokens = 7;  // tiles of 128 tokens
constexpr int kRowLines = 9;    // lines of 64 KiB in packets of 128 B
constexpr int kColumns = 8;     // 256 blocks of a GEMM in a row of tiles
constexpr int kTopK = 6;        // up to 32 results of a token

void add_dysharp(const Machine& machine, std::vector<AreaTable>& tables) {
    const DysharpSpec& spec = machine.dysharp;
    const int banks = spec.tlb_banks;  // the paper: all its tables have 16
    const int arrived = kTileTokens + kRowLines + 1;
    add_tables(
        tables, {"DySHARP", 12},
        {// An instruction, and one flit of its list of targets.
         sram("MultimemQ", spec.multimem_entries,
              kValid + kAddress + kStage + kTargets + kShared + kRegister +
                  spec.flit_targets * kExpert),
         sram("AL TLB", spec.tlb_entries, kValid + kExpert + kIndex + kIndex).in_banks(banks),
         // Expert and tile; lines that have come; blocks done of either GEMM.
         sram("TS table", spec.ts_entries,
              kValid + kExpert + (kIndex - kTileTokens) + arrived + 2 * kColumns)
             .in_banks(banks),
         sram("OR table", spec.or_entries, kValid + kIndex + kTopK).in_banks(banks)});

    // A switch that reduces for NVLS has partial sums and their addresses. That of DySHARP counts
    // for each how many have yet to answer, GPUs or targets: wider entries of the same banks.
    const int answers = spec.reduce_locally ? bits_for(machine.gpus_per_node + 1) : kTargets;
    const int ports = ports_of(machine);
    add_tables(tables, {"DySHARP", 12, AreaSide::in_switch},
               {sram("partial sums", spec.sum_packets, static_cast<int>(8 * machine.link.payload))
                    .times(ports)
                    .there_today(),
                cam("their tags", spec.sum_packets, kValid + kAddress).times(ports).there_today(),
                sram("their counts", spec.sum_packets, answers).in_banks(0).times(ports)});
}

// CAIS's tables (arXiv 2605.05628), in 12 nm as its figures: blocks of a GPU that wait for others;
// merge units and the group table in a switch. It publishes the entries of a merge unit and what
// each holds; widths, and what a GPU needs to wait for a group's release, are choices.

constexpr int kType = 1;        // load or reduction
constexpr int kState = 2;       // Load-Wait, Load-Ready, Reduction
constexpr int kTag = 16;        // a requester's, to be answered with
constexpr int kBlock = 32;      // index of a thread block in its grid
constexpr int kKernel = 4;      // kernels that run at once
constexpr int kPhase = 1;       // phase of a block: before its launch, before its first access
constexpr int kGroups = 512;    // groups in a switch: blocks of one GPU of 132 SMs, four on each
constexpr int kBlocksOfSm = 4;  // blocks of GEMMs on an SM, resident at a time
constexpr int kInFlight = 13;   // requests: up to 4224 of a GPU

void add_cais(const Machine& machine, std::vector<AreaTable>& tables) {
    const int gpus = machine.gpus_per_node;
    const int peers = gpus > 1 ? gpus - 1 : 0;
    const std::int64_t waiting = std::int64_t{machine.gpu.sms} * kBlocksOfSm;
    constexpr int kGroup = kValid + kKernel + kBlock + kPhase;
    add_tables(tables, {"CAIS", 12},
               {// A block that waits: which group, what for; and whether its switches have released
                // it, beside them.
                cam("blocks that wait", waiting, kGroup),
                sram("their releases", waiting, bits_for(machine.switches + 1)).in_banks(0),
                // Throttling: loads and reductions in flight to each peer.
                sram("requests in flight", peers, 2 * kInFlight).times(peers > 0 ? 1 : 0)});
    const int entries = machine.cais.merge_entries;
    const int ports = ports_of(machine);
    // Requesters are wider entries of the lines' banks.
    add_tables(
        tables, {"CAIS", 12, AreaSide::in_switch},
        {cam("merge tags", entries, kValid + kAddress + kType).times(ports),
         sram("merge lines", entries, static_cast<int>(8 * machine.link.payload)).times(ports),
         sram("their requesters", entries,
              kState + bits_for(gpus) + peers * (bits_for(gpus) + kTag))
             .in_banks(0)
             .times(ports),
         cam("group sync", kGroups, kGroup + gpus).times(machine.switches > 0 ? 1 : 0)});
}

/// What papers publish for one GPU or one switch.
struct Published {
    const char* proposal;
    AreaSide side;
    double mm2;
    bool below;
};
constexpr Published kPublished[] = {
    {"MoE-Hub", AreaSide::gpu, 0.49, false},       // arXiv 2605.05888, 7 nm
    {"DySHARP", AreaSide::gpu, 0.198, false},      // arXiv 2605.05607, 12 nm
    {"DySHARP", AreaSide::in_switch, 0.01, true},  // arXiv 2605.05607, 12 nm
    {"CAIS", AreaSide::gpu, 0.019, false},         // arXiv 2605.05628, 12 nm
    {"CAIS", AreaSide::in_switch, 0.50, false},    // arXiv 2605.05628, 12 nm
};

AreaTotal empty_total(const AreaTable& table) {
    AreaTotal total{.proposal = table.proposal, .side = table.side, .node_nm = table.node_nm};
    for (const Published& one : kPublished)
        if (one.proposal == table.proposal && one.side == table.side) {
            total.published_mm2 = one.mm2;
            total.published_below = one.below;
        }
    return total;
}

}  // namespace

std::vector<AreaTable> area_of(const Machine& machine) {
    check(machine);
    std::vector<AreaTable> tables;
    for (const auto add : {add_moe_hub, add_dysharp, add_cais}) add(machine, tables);
    return tables;
}

std::vector<AreaTotal> area_totals(const std::vector<AreaTable>& tables) {
    std::vector<AreaTotal> totals;
    for (const AreaTable& table : tables) {
        auto total = std::find_if(totals.begin(), totals.end(), [&](const AreaTotal& one) {
            return one.proposal == table.proposal && one.side == table.side;
        });
        if (total == totals.end()) total = totals.insert(total, empty_total(table));
        if (table.added) {
            total->bits += table.bits();
            total->mm2 += table.mm2;
        } else {
            total->there_mm2 += table.mm2;
        }
    }
    return totals;
}

double bit_cell_um2(int node_nm) {
    switch (node_nm) {
        case 7:
            return 0.027;
        case 12:
            return 0.074;
        default:
            throw std::logic_error(fmt::format("no bit cell of {} nm", node_nm));
    }
}

AreaTable with_area(AreaTable table, const CellCosts& costs) {
    const double cell = table.kind == CellKind::sram ? costs.sram : costs.cam;
    const double bits = static_cast<double>(table.bits()) * cell / costs.efficiency;
    const double banks = static_cast<double>(table.copies) * table.banks * costs.bank;
    table.mm2 = (bits + banks) * bit_cell_um2(table.node_nm) * 1e-6;
    return table;
}

}  // namespace moehub
