#include "study/area_cells.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace moehub {

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
