/// What bits cost in silicon:
///
///     mm² = (bits · cell / efficiency + banks · bank) · bit cell of the process
///
/// Sources and the error that is left: docs/area.md.
#pragma once
#include <moehub/area.hpp>

namespace moehub {

/// TSMC's high-density six-transistor cells: 0.027 µm² (N7), 0.074 µm² (N16, of which 12 nm is a
/// derivative with the same cell). Throws std::logic_error for other processes.
double bit_cell_um2(int node_nm);

/// Areas in units of that cell.
struct CellCosts {
    double sram = 4.0 / 3;    ///< 1R1W takes eight transistors instead of six
    double cam = 2;           ///< ten transistors, search lines and a match line
    double efficiency = 0.7;  ///< share of a macro's area that is cells: TSMC N3E publishes cells
                              ///< of 0.021 µm² and 31.8 Mib/mm²
    double bank = 48'000;     ///< decoders, sense amplifiers and the logic that works on a bank.
                              ///< A fit, to DySHARP's GPU: the one figure whose tables all have
                              ///< published sizes
};

/// The table with its `mm2` filled in.
AreaTable with_area(AreaTable table, const CellCosts& costs = {});

}  // namespace moehub
