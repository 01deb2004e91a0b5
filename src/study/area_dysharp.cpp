/// DySHARP's tables (arXiv 2605.05607), in 12 nm as its figures.
#include "study/area_units.hpp"

namespace moehub {
namespace {

constexpr int kNode = 12;
constexpr int kValid = 1;
// The packet's own fields.
constexpr int kExpert = 16;
constexpr int kAddress = 48;
constexpr int kStage = 1;
constexpr int kTargets = 15;  // how many
constexpr int kIndex = 31;    // algebraic or layout, as in the AL table

constexpr int kShared = 18;     // address in 256 KiB of shared memory
constexpr int kRegister = 14;   // where the data is: one of 64 warps, one of 256 registers
constexpr int kTileTokens = 7;  // tiles of 128 tokens
constexpr int kRowLines = 9;    // of 64 KiB in packets of 128 B
constexpr int kColumns = 8;     // 256 blocks of a GEMM in a row of tiles
constexpr int kTopK = 6;        // up to 32 results of a token

AreaTable on_gpu(const char* name, std::int64_t entries, int bits, int banks) {
    return {.proposal = "DySHARP",
            .name = name,
            .entries = entries,
            .entry_bits = bits,
            .banks = banks,
            .node_nm = kNode};
}

AreaTable in_switch(const char* name, const Machine& machine, int bits) {
    AreaTable table = on_gpu(name, machine.dysharp.sum_packets, bits, 1);
    table.side = AreaSide::in_switch;
    table.copies = machine.switches > 0 ? machine.gpus_per_node : 0;
    return table;
}

}  // namespace

std::vector<AreaTable> dysharp_tables(const Machine& machine) {
    const DysharpSpec& spec = machine.dysharp;
    const int banks = spec.tlb_banks;  // the paper: all its tables have 16
    // An instruction, and one flit of its list of targets.
    const AreaTable queue = on_gpu(
        "MultimemQ", spec.multimem_entries,
        kValid + kAddress + kStage + kTargets + kShared + kRegister + spec.flit_targets * kExpert,
        1);
    const AreaTable tlb =
        on_gpu("AL TLB", spec.tlb_entries, kValid + kExpert + kIndex + kIndex, banks);
    // Expert and tile; lines that have come; blocks done of either GEMM.
    const AreaTable tiles = on_gpu(
        "TS table", spec.ts_entries,
        kValid + kExpert + (kIndex - kTileTokens) + (kTileTokens + kRowLines + 1) + 2 * kColumns,
        banks);
    const AreaTable ready = on_gpu("OR table", spec.or_entries, kValid + kIndex + kTopK, banks);

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

}  // namespace moehub
