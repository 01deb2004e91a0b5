/// The tables of each proposal: one function each, listed in area.cpp. Entries and banks are the
/// machine's; the bits of an entry follow from its fields, named beside their widths.
#pragma once
#include <moehub/area.hpp>

#include <vector>

namespace moehub {

/// RPM, AAU and DAM of a GPU's hub.
std::vector<AreaTable> moe_hub_tables(const Machine& machine);

/// MultimemQ, AL TLB and trackers of a GPU; reductions in a switch.
std::vector<AreaTable> dysharp_tables(const Machine& machine);

/// Blocks of a GPU that wait for others; merge units and the group table in a switch.
std::vector<AreaTable> cais_tables(const Machine& machine);

/// Bits that tell so many things apart; none for a single one.
constexpr int bits_for(std::int64_t things) {
    int bits = 0;
    while (bits < 62 && std::int64_t{1} << bits < things) ++bits;
    return bits;
}

// What bits cost in silicon:
//
//     mm² = (bits · cell / efficiency + banks · bank) · bit cell of the process
//
// Sources and the error that is left: docs/area.md.

/// TSMC's high-density six-transistor cells: 0.027 µm² (N7), 0.074 µm² (N16, of which 12 nm is a
/// derivative with the same cell). Throws std::logic_error for other processes.
double bit_cell_um2(int node_nm);

/// Areas in units of that cell.
struct CellCosts {
    double sram = 4.0 / 3;    ///< 1R1W takes eight transistors instead of six
    double cam = 2;           ///< ten transistors, search lines and a match line
    double efficiency = 0.7;  ///< of a macro's area, its cells: TSMC N3E publishes cells of
                              ///< 0.021 µm² and 31.8 Mib/mm²
    double bank = 48'000;     ///< decoders, sense amplifiers and the logic that works on a bank.
                              ///< A fit, to DySHARP's GPU: the one figure whose tables all have
                              ///< published sizes
};

/// With its `mm2` filled in.
AreaTable with_area(AreaTable table, const CellCosts& costs = {});

}  // namespace moehub
