// DySHARP taken apart, what crosses the wires, and how large its units need to be.
//
// Bytes are those of all links, headers, requests and acknowledgements included, up and down
// together. Of what NVLS delivers on the way to the experts the useless part is, over the useful,
//
//     (down[nvls] - down[dysharp]) / (down[deepep] / 2):
//
// both bring every token's sum down once, so that their difference is copies nobody asked for, and
// half of what comes down under DeepEP is one copy for each GPU that did.
#include "study/reproduce_dysharp.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kGiga = 1e9;

double bytes_of(const ReproducedCell& cell) {
    return static_cast<double>(cell.bytes_up + cell.bytes_down);
}

FigureTable::Row traffic_row(const DysharpConfig& config, const Lookup& cell, FigureTable& table) {
    const auto under = [&](std::string_view system) -> const ReproducedCell& {
        const ReproducedCell& one = cell(usual_point(config).under(system));
        note_refusal({config.name}, one, table);
        return one;
    };
    const ReproducedCell& dysharp = under("dysharp");
    const ReproducedCell& deepep = under("deepep");
    const ReproducedCell& nvls = under("nvls");
    const bool ours = dysharp.time > 0 && deepep.time > 0;
    const bool theirs = nvls.time > 0 && deepep.time > 0;
    const auto useless = static_cast<double>(nvls.bytes_down - dysharp.bytes_down);
    const double useful = static_cast<double>(deepep.bytes_down) / 2;
    return {{config.name},
            {share_of(bytes_of(deepep), kGiga, deepep.time > 0),
             share_of(bytes_of(dysharp), bytes_of(deepep), ours),
             share_of(bytes_of(nvls), bytes_of(deepep), theirs),
             share_of(useless, useful, ours && theirs)}};
}

// Ablation: in-switch primitives with kernels one after the other, fusion without the primitives,
// and the primitives under Comet's schedule.

struct AblationPart {
    const char* system;
    const char* what;
};
constexpr AblationPart kAblationParts[] = {
    {"dysharp", "primitives and fusion"},
    {"dysharp-basic", "primitives, one kernel after the other"},
    {"fusion-only", "fusion, a copy for each GPU"},
    {"steps-only", "one kernel after the other, a copy for each GPU"},
    {"dysharp-comet", "primitives under Comet's schedule"},
    {"comet", "as published"},
    {"deepep", "as published"},
};

/// Claims of the ablation. A ratio is 0 where one of the two did not run.
std::vector<PublishedClaim> ablation_claims(const FigureTable& table) {
    constexpr double kNoGain = 1.1;  // numbers within 10 % are the same
    const auto of = [&](std::string_view system, std::size_t column) {
        const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                      [&](const auto& one) { return one.labels[0] == system; });
        return row->values[column].value_or(0);
    };
    const auto claim = [](const char* what, bool holds, std::string found) {
        return dysharp_paper().claim("ablation", what, holds, std::move(found));
    };
    const double traffic = share_of(of("dysharp-basic", 1), of("deepep", 1)).value_or(0);
    const double alone =
        share_of(of("steps-only", 0), of("dysharp-basic", 0), of("steps-only", 0) > 0).value_or(0);
    const double fusion = of("fusion-only", 3);
    const bool fastest =
        of("dysharp", 0) > 0 &&
        std::all_of(table.rows.begin() + 1, table.rows.end(),
                    [&](const auto& row) { return row.values[0].value_or(0) > of("dysharp", 0); });
    return {claim("primitives without fusion cut traffic", traffic > 0 && traffic < 0.7,
                  fmt::format("to {:.0f} % of deepep's", 100 * traffic)),
            claim("primitives without fusion gain no time", alone > 0 && alone < kNoGain,
                  fmt::format("dysharp-basic {:.2f}× as fast as steps-only, {:.2f}× as deepep",
                              alone, of("dysharp-basic", 2))),
            claim("fusion without primitives does not beat comet", fusion > 0 && fusion < kNoGain,
                  fmt::format("fusion-only {:.2f}× as fast as comet", fusion)),
            claim("both together are faster than any of the others", fastest,
                  fmt::format("over deepep {:.2f}×, over comet {:.2f}×", of("dysharp", 2),
                              of("dysharp", 3)))};
}

/// One table of a DySHARP machine; its sizes are named by `label`.
struct UnitSweep {
    const char* figure;
    const char* title;
    const char* key;  ///< key of the machine
    int chosen = 0;   ///< the paper's choice
    const char* label;
    int (*size)(int entries);  ///< size of so many entries in the label's unit
};

/// A size is a sweet spot when less costs time and more gains none. Each claim needs a size on its
/// side of the chosen one.
std::vector<PublishedClaim> sweep_claims(const UnitSweep& sweep, const FigureTable& table) {
    constexpr double kMatters = 0.02;  ///< a difference in time that matters
    const std::string chosen = fmt::format("{}", sweep.size(sweep.chosen));
    const auto own = std::find_if(table.rows.begin(), table.rows.end(),
                                  [&](const auto& row) { return row.labels[0] == chosen; });
    std::vector<PublishedClaim> claims;
    const auto claim = [&](std::string what, double beyond, const FigureTable::Row& row) {
        const double time = row.values[1].value_or(0);
        claims.push_back(dysharp_paper().claim(
            sweep.figure, what, time > beyond,
            fmt::format("with {} {:.3f} of the time with {}", row.labels[0], time, chosen)));
    };
    if (own != table.rows.end() && own != table.rows.begin())
        claim(fmt::format("less than {} {} costs time", chosen, sweep.label), 1 + kMatters,
              table.rows.front());
    if (own != table.rows.end() && std::next(own) != table.rows.end())
        claim(fmt::format("more than {} {} gains none", chosen, sweep.label), 1 - kMatters,
              table.rows.back());
    return claims;
}

FigureResult sweep_figure(const UnitSweep& sweep, const std::vector<int>& sizes,
                          const DysharpScope& scope, const Lookup& cell) {
    FigureTable table{sweep.figure,
                      fmt::format("{}, {} tokens of a GPU, every packet: {}", scope.usual.name,
                                  scope.unit_sequence, sweep.title),
                      {sweep.label},
                      {{"dysharp µs", NumberKind::time},
                       {"of the time chosen"},
                       {"GB on all links", NumberKind::size}}};
    DysharpConfig config = scope.usual;
    config.sequence = scope.unit_sequence;
    const auto with = [&](int entries) -> const ReproducedCell& {
        CellKey key = usual_point(config).under("dysharp");
        key.changes.push_back(fmt::format("{}={}", sweep.key, entries));
        key.grain = Grain::packet;
        return cell(key);
    };
    const ReproducedCell& chosen = with(sweep.chosen);
    note_refusal({fmt::format("{}", sweep.size(sweep.chosen))}, chosen, table);
    for (const int entries : sizes) {
        const ReproducedCell& one = with(entries);
        table.rows.push_back(
            {{fmt::format("{}", sweep.size(entries))},
             {to_us(one.time), faster(one.time, chosen.time), bytes_of(one) / kGiga}});
    }
    return {{}, sweep_claims(sweep, table), {table}};
}

FigureResult traffic_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table{"traffic",
                      "One MoE layer: bytes on all links, up and down",
                      {"configuration"},
                      {{"deepep GB", NumberKind::size},
                       {"dysharp of deepep", NumberKind::share},
                       {"nvls over deepep"},
                       {"nvls, useless over useful", NumberKind::share}}};
    for (const DysharpConfig& config : scope.configs)
        table.rows.push_back(traffic_row(config, cell, table));
    FigureTable large = table;
    const FigureTable::Row of_large = traffic_row(scope.large, cell, large);
    const double share = geometric_mean_of(column_of(table, 1)).value_or(0);
    const double ratio = geometric_mean_of(column_of(table, 2)).value_or(0);
    return {{dysharp_paper().number("traffic", "nvls, useless over useful, L top-8",
                                    of_large.values[3].value_or(0))},
            {dysharp_paper().claim("traffic", "nearly halves deepep's traffic",
                                   share > 0.4 && share < 0.6,
                                   fmt::format("{:.0f} % of it", 100 * share)),
             dysharp_paper().claim("traffic", "nvls moves more than deepep", ratio > 1,
                                   fmt::format("{:.2f} times as much", ratio))},
            {std::move(table)}};
}

FigureResult wire_figure(const DysharpScope& scope, const Lookup& cell) {
    const DysharpPoint point = usual_point(scope.large);
    FigureTable table{"wire",
                      fmt::format("{}: exposed in deepep's layer; rows alone, the part of the time "
                                  "in which the busier direction of the busiest GPU is in use",
                                  scope.large.name),
                      {"system", "what runs"},
                      {{"µs", NumberKind::time},
                       {"exposed", NumberKind::share},
                       {"wire in use", NumberKind::share}}};
    const ReproducedCell& layer = cell(point.under("deepep"));
    const auto exposed = share_of(static_cast<double>(layer.communication),
                                  static_cast<double>(layer.time), layer.time > 0);
    table.rows.push_back({{"deepep", "the layer"}, {to_us(layer.time), exposed, std::nullopt}});
    for (const std::string system : {"dysharp-basic", "deepep", "nvls"}) {
        const ReproducedCell& rows = cell(point.under(system, CellWork::communication));
        const std::vector<std::string> labels{system, "rows alone"};
        note_refusal(labels, rows, table);
        table.rows.push_back({labels,
                              {to_us(rows.time), std::nullopt,
                               share_of(static_cast<double>(rows.busier_way),
                                        static_cast<double>(rows.time), rows.time > 0)}});
    }
    const double reached = table.rows[1].values[2].value_or(0);
    // The paper's share of DeepEP's layer, of which it says what the others would have to save.
    return {
        {dysharp_paper().number("wire", "communication in deepep's layer", exposed.value_or(0))},
        {dysharp_paper().claim("wire", "rows alone reach over 90 % of what the wire allows",
                               reached > 0.9,
                               fmt::format("dysharp-basic {:.0f} %", 100 * reached))},
        {std::move(table)}};
}

FigureResult ablation_parts(const DysharpScope& scope, const Lookup& cell) {
    const auto under = [&](const char* system) -> const ReproducedCell& {
        return cell(usual_point(scope.large).under(system));
    };
    FigureTable table{"ablation",
                      fmt::format("{}: one MoE layer", scope.large.name),
                      {"system", "what it has"},
                      {{"µs", NumberKind::time},
                       {"GB on all links", NumberKind::size},
                       {"over deepep"},
                       {"over comet"}}};
    for (const AblationPart& part : kAblationParts) {
        const ReproducedCell& one = under(part.system);
        const std::vector<std::string> labels{part.system, part.what};
        note_refusal(labels, one, table);
        table.rows.push_back(
            {labels,
             {to_us(one.time), bytes_of(one) / kGiga, faster(under("deepep").time, one.time),
              faster(under("comet").time, one.time)}});
    }
    return {{}, ablation_claims(table), {table}};
}

FigureResult tlb_figure(const DysharpScope& scope, const Lookup& cell) {
    return sweep_figure({"tlb", "entries of the AL TLB", "dysharp.tlb_entries", 512, "entries",
                         [](int entries) { return entries; }},
                        scope.tlb_entries, scope, cell);
}

FigureResult buffer_figure(const DysharpScope& scope, const Lookup& cell) {
    return sweep_figure({"buffer", "reduction buffer of a switch's port", "dysharp.sum_packets",
                         512, "KB", [](int packets) { return packets * 128 / 1024; }},
                        scope.sum_packets, scope, cell);
}

}  // namespace

std::vector<PaperFigure> dysharp_parts(const DysharpScope& scope) {
    return {figure_of("traffic", traffic_figure, scope), figure_of("wire", wire_figure, scope),
            figure_of("ablation", ablation_parts, scope, false)};
}

std::vector<PaperFigure> dysharp_units(const DysharpScope& scope) {
    return {figure_of("tlb", tlb_figure, scope, false),
            figure_of("buffer", buffer_figure, scope, false)};
}

}  // namespace moehub
