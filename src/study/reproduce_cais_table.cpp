// What merging tables need and what smaller ones cost, with thread blocks coordinated and without;
// and how well links are used.
#include "study/figure_table.hpp"
#include "study/reproduce_cais.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr double kEntry = 128;            ///< bytes
constexpr double kKilobyte = 1024;        ///< 320 entries are the paper's 40 KB
constexpr double kSeveral = 3;            ///< times
constexpr double kHardly = 1.1;           ///< of the time with all it needs
constexpr double kPaperNeed = 250;        ///< KB
constexpr double kPaperNeedLess = 0.87;   ///< share of it that coordination saves
constexpr double kPaperSpread = 35;       ///< µs
constexpr double kCoordinatedNeed = 40;   ///< KB, at most
constexpr double kCoordinatedSpread = 3;  ///< µs, at most

double need_kb(const ReproducedCell& cell) {
    return cell.merge.deepest * kEntry / kKilobyte;
}

/// GPUs start as far apart as requests come at a switch in the paper: nothing else here drives them
/// apart as far.
CellKey with_entries(CellKey key, int entries) {
    key.changes = {fmt::format("cais.merge_entries={}", entries),
                   fmt::format("start_spread={} us", kPaperSpread)};
    return key;
}

/// Where entries wait for the last request, however long that takes.
CellKey patient(CellKey key) {
    key.changes.emplace_back("cais.merge_timeout=1 ms");
    return key;
}

std::string size_text(int entries) {
    return entries > 10'000 ? "unlimited" : fmt::format("{}", entries);
}

PublishedNumber number_of(const std::string& figure, std::string what, NumberKind kind,
                          double paper, double ours) {
    return {figure, std::move(what), kind, paper, ours, ours, ""};
}

/// What uncoordinated sub-layers need where nothing limits them, and coordinated ones use of the
/// paper's table: the throttle keeps within it, so that with a larger one they use more.
struct Needs {
    double apart_kb = 0;     ///< the largest
    double together_kb = 0;  ///< the largest
    double apart_us = 0;     ///< mean over sub-layers
    double together_us = 0;  ///< mean over sub-layers
};

Needs add_needs(const CaisScope& scope, const Lookup& cell, FigureTable& table) {
    Needs needs;
    double cells = 0;
    for (const CaisModel& model : scope.models)
        for (const std::string& part : scope.parts) {
            const auto unlimited = [&](std::string_view system) -> const ReproducedCell& {
                return cell(patient(
                    with_entries(cais_cell(model, part, system), scope.merge_entries.back())));
            };
            const ReproducedCell& apart = unlimited(kCaisUncoordinated);
            const ReproducedCell& together =
                cell(with_entries(cais_cell(model, part, kCais), kCaisMergeEntries));
            needs.apart_kb = std::max(needs.apart_kb, need_kb(apart));
            needs.together_kb = std::max(needs.together_kb, need_kb(together));
            needs.apart_us += apart.merge.spread_us;
            needs.together_us += together.merge.spread_us;
            ++cells;
            table.rows.push_back(
                {{model.name, part},
                 {need_kb(apart), need_kb(together), apart.merge.spread_us,
                  together.merge.spread_us, apart.merge.longest_us, together.merge.longest_us},
                 false});
        }
    needs.apart_us /= cells;
    needs.together_us /= cells;
    return needs;
}

FigureTable curve_of(const CaisScope& scope, const Lookup& cell) {
    FigureTable table{
        "table",
        fmt::format("{}, by entries of a port: time, and of the time with all it needs",
                    scope.usual.name),
        {"sub-layer", "entries"},
        {{"uncoordinated µs", NumberKind::time},
         {"of unlimited, 1 ms", NumberKind::ratio},
         {"coordinated µs", NumberKind::time},
         {"of unlimited, 1 ms", NumberKind::ratio}},
        {},
        {}};
    for (const std::string& part : scope.few_parts)
        for (const int entries : scope.merge_entries) {
            FigureTable::Row row{{part, size_text(entries)}, {}, false};
            for (const std::string_view system : {kCaisUncoordinated, kCais}) {
                const CellKey key = cais_cell(scope.usual, part, system);
                const ReproducedCell& one = cell(with_entries(key, entries));
                const ReproducedCell& all =
                    cell(patient(with_entries(key, scope.merge_entries.back())));
                row.values.push_back(to_us(one.time));
                row.values.push_back(faster(one.time, all.time));
            }
            table.rows.push_back(std::move(row));
        }
    return table;
}

/// With the paper's table, the first sub-layer of the curve; the smallest beside.
PublishedClaim small_costs(const FigureTable& curve) {
    PublishedClaim claim{curve.figure, "without coordination 40 KB cost time, with it hardly",
                         false, "", ""};
    for (const FigureTable::Row& row : curve.rows) {
        if (row.labels[0] != curve.rows.front().labels[0]) continue;
        const double apart = row.values[1].value_or(0);
        const double together = row.values[3].value_or(0);
        const bool chosen = row.labels[1] == size_text(kCaisMergeEntries);
        if (chosen) claim.holds = apart > kHardly && together > 0 && together < kHardly;
        if (chosen || &row == &curve.rows.front())
            claim.found +=
                fmt::format("{}{} entries: {:.2f} of the time without, {:.2f} with",
                            claim.found.empty() ? "" : "; ", row.labels[1], apart, together);
    }
    return claim;
}

std::vector<PublishedClaim> claims_of(const Needs& needs, const FigureTable& curve) {
    return {{"table", "coordination shrinks the table needed several times",
             needs.apart_kb > kSeveral * needs.together_kb,
             fmt::format("{:.0f} to {:.0f} KB a port", needs.apart_kb, needs.together_kb), ""},
            {"table", "coordination shrinks the spread of requests several times",
             needs.apart_us > kSeveral * needs.together_us,
             fmt::format("{:.1f} to {:.1f} µs", needs.apart_us, needs.together_us), ""},
            {"table", "coordinated, a port needs less than 40 KB",
             needs.together_kb > 0 && needs.together_kb < kCoordinatedNeed,
             fmt::format("{:.1f} KB", needs.together_kb), ""},
            {"table", "coordinated, requests spread over less than 3 µs",
             needs.together_us > 0 && needs.together_us < kCoordinatedSpread,
             fmt::format("{:.1f} µs", needs.together_us), ""},
            small_costs(curve)};
}

}  // namespace

FigureResult cais_table_figure(const CaisScope& scope, const Lookup& cell) {
    FigureTable table{"table",
                      "What a port's table needs, and from a line's first request to its last",
                      {"model", "sub-layer"},
                      {{"uncoordinated KB", NumberKind::size},
                       {"coordinated KB", NumberKind::size},
                       {"uncoordinated µs, mean", NumberKind::time},
                       {"coordinated µs, mean", NumberKind::time},
                       {"uncoordinated µs, most", NumberKind::time},
                       {"coordinated µs, most", NumberKind::time}},
                      {},
                      {}};
    const Needs needs = add_needs(scope, cell, table);
    FigureTable curve = curve_of(scope, cell);
    FigureResult result;
    const double saved = needs.apart_kb > 0 ? 1 - needs.together_kb / needs.apart_kb : 0;
    result.numbers = {number_of("table", "KB a port needs, uncoordinated, largest",
                                NumberKind::size, kPaperNeed, needs.apart_kb),
                      number_of("table", "of that, what coordination saves", NumberKind::share,
                                kPaperNeedLess, saved),
                      number_of("table", "µs between requests, uncoordinated, mean",
                                NumberKind::time, kPaperSpread, needs.apart_us)};
    result.claims = claims_of(needs, curve);
    result.tables = {std::move(table), std::move(curve)};
    return result;
}

FigureResult cais_utilisation_figure(const CaisScope& scope, const Lookup& cell) {
    const std::pair<std::string_view, double> paper[] = {
        {kCaisBase, 0.624}, {kCaisPartial, 0.847}, {kCais, 0.902}};
    FigureTable table{"utilisation",
                      "Share of the time in which links carry flits",
                      {"model", "sub-layer"},
                      {},
                      {},
                      {}};
    for (const auto& [system, share] : paper)
        table.columns.push_back({std::string(system), NumberKind::share});
    for (const auto& [system, share] : paper)
        table.columns.push_back({fmt::format("{}, busier way", system), NumberKind::share});
    for (const CaisModel& model : scope.models)
        for (const std::string& part : scope.parts) {
            FigureTable::Row row{{model.name, part}, {}, false};
            for (const auto& [system, share] : paper)
                row.values.push_back(cell(cais_cell(model, part, system)).link_use);
            for (const auto& [system, share] : paper) {
                const ReproducedCell& one = cell(cais_cell(model, part, system));
                row.values.push_back(one.time > 0 ? static_cast<double>(one.busier_way) /
                                                        static_cast<double>(one.time)
                                                  : 0);
            }
            table.rows.push_back(std::move(row));
        }
    FigureResult result;
    std::vector<double> means;
    for (std::size_t i = 0; i < std::size(paper); ++i) {
        const double mean = mean_of(column_of(table, i)).value_or(0);
        means.push_back(mean);
        result.numbers.push_back(number_of("utilisation",
                                           fmt::format("links in use, {}", paper[i].first),
                                           NumberKind::share, paper[i].second, mean));
    }
    result.claims.push_back(
        {"utilisation", "rises from CAIS-Base to CAIS-Partial to CAIS",
         means[0] < means[1] && means[1] < means[2],
         fmt::format("{:.1f}, {:.1f}, {:.1f} %", 100 * means[0], 100 * means[1], 100 * means[2]),
         ""});
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace moehub
