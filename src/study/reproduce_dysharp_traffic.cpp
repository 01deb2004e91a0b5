// What crosses the wires, and how well they are used. Bytes are those of all links, headers,
// requests and acknowledgements included, up and down together. Of what NVLS delivers on the way to
// the experts the useless part is, over the useful,
//
//     (down[nvls] - down[dysharp]) / (down[deepep] / 2):
//
// both bring every token's sum down once, so that their difference is copies nobody asked for, and
// half of what comes down under DeepEP is one copy for each GPU that did.
#include "study/reproduce_dysharp_leads.hpp"

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kGiga = 1e9;

double bytes_of(const ReproducedCell& cell) {
    return static_cast<double>(cell.bytes_up + cell.bytes_down);
}

std::optional<double> over(double part, double whole, bool ran) {
    return ran && whole > 0 ? std::optional(part / whole) : std::nullopt;
}

FigureTable::Row traffic_row(const DysharpConfig& config, const Lookup& cell, FigureTable& table) {
    const auto under = [&](std::string_view system) -> const ReproducedCell& {
        const ReproducedCell& one = cell(usual_point(config).under(system, CellWork::layer));
        note_refusal({config.name}, one, table);
        return one;
    };
    const ReproducedCell& dysharp = under(kDysharp);
    const ReproducedCell& deepep = under(kDeepEp);
    const ReproducedCell& nvls = under(kNvls);
    const bool ours = dysharp.time > 0 && deepep.time > 0;
    const bool theirs = nvls.time > 0 && deepep.time > 0;
    const auto useless = static_cast<double>(nvls.bytes_down - dysharp.bytes_down);
    const double useful = static_cast<double>(deepep.bytes_down) / 2;
    return {{config.name},
            {over(bytes_of(deepep), kGiga, deepep.time > 0),
             over(bytes_of(dysharp), bytes_of(deepep), ours),
             over(bytes_of(nvls), bytes_of(deepep), theirs), over(useless, useful, ours && theirs)},
            false};
}

PublishedClaim halves(const FigureTable& table) {
    const double share = geometric_mean_of(column_of(table, 1)).value_or(0);
    return {"traffic", "nearly halves deepep's traffic", share > 0.4 && share < 0.6,
            fmt::format("{:.0f} % of it", 100 * share), ""};
}

PublishedClaim nvls_moves_more(const FigureTable& table) {
    const double ratio = geometric_mean_of(column_of(table, 2)).value_or(0);
    return {"traffic", "nvls moves more than deepep", ratio > 1,
            fmt::format("{:.2f} times as much", ratio), ""};
}

/// The paper's share of DeepEP's layer, of which it says what the others would have to save.
PublishedNumber communication_share(const FigureTable& table, const ReproducedCell& cell) {
    PublishedNumber number = published(table, "communication in deepep's layer", 0.704,
                                       {over(static_cast<double>(cell.communication),
                                             static_cast<double>(cell.time), cell.time > 0)});
    number.kind = NumberKind::share;
    return number;
}

}  // namespace

FigureResult dysharp_traffic_figure(const DysharpScope& scope, const Lookup& cell) {
    FigureTable table{"traffic",
                      "One MoE layer: bytes on all links, up and down",
                      {"configuration"},
                      {{"deepep GB", NumberKind::size},
                       {"dysharp of deepep", NumberKind::share},
                       {"nvls over deepep", NumberKind::ratio},
                       {"nvls, useless over useful", NumberKind::share}},
                      {},
                      {}};
    FigureResult result;
    for (const DysharpConfig& config : scope.configs)
        table.rows.push_back(traffic_row(config, cell, table));
    FigureTable large = table;
    large.rows = {traffic_row(scope.large, cell, large)};
    result.numbers.push_back(
        published(table, fmt::format("nvls, useless over useful, {}", scope.large.name), 3.4,
                  column_of(large, 3)));
    result.numbers.back().kind = NumberKind::share;
    result.claims = {halves(table), nvls_moves_more(table)};
    result.tables.push_back(std::move(table));
    return result;
}

FigureResult dysharp_wire_figure(const DysharpScope& scope, const Lookup& cell) {
    const DysharpPoint point = usual_point(scope.large);
    FigureTable table{"wire",
                      fmt::format("{}: exposed in deepep's layer; rows alone, the part of the time "
                                  "in which the busier direction of the busiest GPU is in use",
                                  scope.large.name),
                      {"system", "what runs"},
                      {{"µs", NumberKind::time},
                       {"exposed", NumberKind::share},
                       {"wire in use", NumberKind::share}},
                      {},
                      {}};
    const ReproducedCell& layer = cell(point.under(kDeepEp, CellWork::layer));
    table.rows.push_back({{std::string(kDeepEp), "the layer"},
                          {to_us(layer.time),
                           over(static_cast<double>(layer.communication),
                                static_cast<double>(layer.time), layer.time > 0),
                           std::nullopt},
                          false});
    std::optional<double> reached;
    for (const std::string_view system : {kPrimitivesAlone, kDeepEp, kNvls}) {
        const ReproducedCell& rows = cell(point.under(system, CellWork::communication));
        const std::vector<std::string> labels{std::string(system), "rows alone"};
        note_refusal(labels, rows, table);
        const auto used = over(static_cast<double>(rows.busier_way), static_cast<double>(rows.time),
                               rows.time > 0);
        if (system == kPrimitivesAlone) reached = used;
        table.rows.push_back({labels, {to_us(rows.time), std::nullopt, used}, false});
    }
    FigureResult result;
    result.numbers = {communication_share(table, layer)};
    result.claims = {{"wire", "rows alone reach over 90 % of what the wire allows",
                      reached.value_or(0) > 0.9,
                      fmt::format("{} {:.0f} %", kPrimitivesAlone, 100 * reached.value_or(0)), ""}};
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace moehub
