#include "study/area_units.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub {
namespace {

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
    {"DySHARP", AreaSide::in_switch, 0.01, true},  // likewise
    {"CAIS", AreaSide::gpu, 0.019, false},         // arXiv 2605.05628, 12 nm
    {"CAIS", AreaSide::in_switch, 0.50, false},    // likewise
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
    for (const auto& unit : {moe_hub_tables, dysharp_tables, cais_tables})
        for (AreaTable& table : unit(machine))
            if (table.copies > 0) tables.push_back(with_area(std::move(table)));
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
