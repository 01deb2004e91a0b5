/// Silicon that the proposals' tables take, from the sizes a machine is configured with, beside the
/// figures that their papers publish. Tables alone, and a fitted share of logic: docs/area.md.
///
///     const auto tables = area_of(load_machine("dgx-h800", {"moe_hub.rat_entries=32768"}));
///     for (const AreaTotal& total : area_totals(tables)) fmt::print("{} {}\n", total.proposal,
///                                                                   total.mm2);
#pragma once
#include <moehub/machine.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace moehub {

enum class CellKind {
    sram,  ///< one read and one write in the same cycle (1R1W)
    cam,   ///< every entry is compared at once
};
enum class AreaSide { gpu, in_switch };

struct AreaTable {
    std::string proposal;  ///< "MoE-Hub"
    AreaSide side = AreaSide::gpu;
    std::string name;  ///< "RAT"
    CellKind kind = CellKind::sram;
    int copies = 1;            ///< copies on one GPU or switch: a partition a peer, a port
    std::int64_t entries = 0;  ///< entries of one copy
    int entry_bits = 0;        ///< bits of one entry
    int banks = 1;             ///< banks of one copy
    bool added = true;         ///< false: today's switches have it, for their own reductions
    int node_nm = 0;           ///< process of the paper's own figure, nm
    double mm2 = 0;            ///< area of all copies, in that process

    std::int64_t bits() const { return copies * entries * entry_bits; }
};

/// All tables of one proposal on one GPU, or in one switch.
struct AreaTotal {
    std::string proposal;
    AreaSide side = AreaSide::gpu;
    int node_nm = 0;
    std::int64_t bits = 0;         ///< bits of the tables that the proposal adds
    double mm2 = 0;                ///< area of the tables that the proposal adds
    double there_mm2 = 0;          ///< area of the tables that today's switches have
    double published_mm2 = 0;      ///< area that the paper publishes; 0: none
    bool published_below = false;  ///< the paper says "under"
};

/// Die of an H100 or H800 (GH100), mm²; shares of a GPU are of this.
constexpr double kGh100Die = 814;

/// Tables of which a machine has none (no peers, no switches) are left out. Throws InputError as
/// check(machine) does.
std::vector<AreaTable> area_of(const Machine& machine);

/// Totals in the order in which proposals and sides come first.
std::vector<AreaTotal> area_totals(const std::vector<AreaTable>& tables);

}  // namespace moehub
