// How large the AL TLB and the switches' reduction buffers need to be, packet by packet. A size is
// a sweet spot when less costs time and more gains none.
#include "study/reproduce_dysharp_leads.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

/// A difference in time that matters.
constexpr double kMatters = 0.02;

/// One table of a DySHARP machine; its sizes are named by `label`.
struct UnitSweep {
    const char* figure;
    const char* title;
    const char* key;  ///< of the machine
    int chosen = 0;   ///< by the paper
    const char* label;
    std::string (*size)(int entries);
};

std::string entries_text(int entries) {
    return fmt::format("{}", entries);
}

std::string kilobytes_text(int packets) {
    return fmt::format("{}", packets * 128 / 1024);
}

/// Each claim needs a size on its side of the chosen one.
std::vector<PublishedClaim> claims_of(const UnitSweep& sweep, const FigureTable& table,
                                      const std::string& chosen) {
    const auto own = std::find_if(table.rows.begin(), table.rows.end(),
                                  [&](const auto& row) { return row.labels[0] == chosen; });
    const FigureTable::Row& least = table.rows.front();
    const FigureTable::Row& most = table.rows.back();
    std::vector<PublishedClaim> claims;
    if (own == table.rows.end()) return claims;
    const auto found = [&](const FigureTable::Row& row) {
        return fmt::format("with {} {:.3f} of the time with {}", row.labels[0],
                           row.values[1].value_or(0), chosen);
    };
    if (own != table.rows.begin())
        claims.push_back({sweep.figure,
                          fmt::format("less than {} {} costs time", chosen, sweep.label),
                          least.values[1].value_or(0) > 1 + kMatters, found(least), ""});
    if (std::next(own) != table.rows.end())
        claims.push_back({sweep.figure,
                          fmt::format("more than {} {} gains none", chosen, sweep.label),
                          most.values[1].value_or(0) > 1 - kMatters, found(most), ""});
    return claims;
}

FigureResult sweep_figure(const UnitSweep& sweep, const std::vector<int>& sizes,
                          const DysharpScope& scope, const Lookup& cell) {
    FigureTable table{sweep.figure,
                      fmt::format("{}, {} tokens of a GPU, every packet: {}", scope.usual.name,
                                  scope.unit_sequence, sweep.title),
                      {sweep.label},
                      {{"dysharp µs", NumberKind::time},
                       {"of the time chosen", NumberKind::ratio},
                       {"GB on all links", NumberKind::size}},
                      {},
                      {}};
    DysharpConfig config = scope.usual;
    config.sequence = scope.unit_sequence;
    const auto with = [&](int entries) -> const ReproducedCell& {
        CellKey key = usual_point(config).under(kDysharp, CellWork::layer);
        key.changes.push_back(fmt::format("{}={}", sweep.key, entries));
        key.grain = Grain::packet;
        return cell(key);
    };
    const ReproducedCell& chosen = with(sweep.chosen);
    note_refusal({sweep.size(sweep.chosen)}, chosen, table);
    for (const int entries : sizes) {
        const ReproducedCell& one = with(entries);
        table.rows.push_back({{sweep.size(entries)},
                              {to_us(one.time), faster(one.time, chosen.time),
                               static_cast<double>(one.bytes_up + one.bytes_down) / 1e9},
                              false});
    }
    FigureResult result;
    result.claims = claims_of(sweep, table, sweep.size(sweep.chosen));
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace

FigureResult dysharp_tlb_figure(const DysharpScope& scope, const Lookup& cell) {
    return sweep_figure({"tlb", "entries of the AL TLB", "dysharp.tlb_entries", kDysharpTlbEntries,
                         "entries", entries_text},
                        scope.tlb_entries, scope, cell);
}

FigureResult dysharp_buffer_figure(const DysharpScope& scope, const Lookup& cell) {
    return sweep_figure({"buffer", "reduction buffer of a switch's port", "dysharp.sum_packets",
                         kDysharpSumPackets, "KB", kilobytes_text},
                        scope.sum_packets, scope, cell);
}

}  // namespace moehub
