/// MoE-Hub's tables (arXiv 2605.05888), in 7 nm as its figure.
#include "sim/hub/aau.hpp"
#include "study/area_units.hpp"

#include <algorithm>

namespace moehub {
namespace {

constexpr int kNode = 7;
constexpr int kValid = 1;
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
            .node_nm = kNode};
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

}  // namespace moehub
