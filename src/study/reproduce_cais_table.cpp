// What merging tables need and what smaller ones cost, with thread blocks coordinated and without;
// how well links are used; and NCCL's in-switch all-reduce against hardware, as the paper checks
// its simulator.
#include "study/reproduce_cais.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

double need_kb(const ReproducedCell& cell) {
    constexpr double kEntry = 128;      // bytes
    constexpr double kKilobyte = 1024;  // 320 entries are the paper's 40 KB
    return cell.merge.deepest * kEntry / kKilobyte;
}

/// GPUs start as far apart as requests come at a switch in the paper: nothing else here drives them
/// apart as far.
CellKey with_entries(CellKey key, int entries) {
    key.changes = {fmt::format("cais.merge_entries={}", entries), "start_spread=35 us"};
    return key;
}

/// The cell with entries that wait for the last request, however long that takes.
CellKey patient(CellKey key) {
    key.changes.emplace_back("cais.merge_timeout=1 ms");
    return key;
}

std::string size_text(int entries) {
    return entries > 10'000 ? "unlimited" : fmt::format("{}", entries);
}

/// What uncoordinated sub-layers need where nothing limits them, and coordinated ones use of the
/// paper's table: the throttle keeps within it, so that with a larger one they use more.
struct Needs {
    double apart_kb = 0;     ///< largest need of sub-layers, uncoordinated
    double together_kb = 0;  ///< largest need of sub-layers, coordinated
    double apart_us = 0;     ///< mean over sub-layers, uncoordinated
    double together_us = 0;  ///< mean over sub-layers, coordinated
};

Needs add_needs(const CaisScope& scope, const Lookup& cell, FigureTable& table) {
    Needs needs;
    double cells = 0;
    for (const CaisModel& model : scope.models)
        for (const std::string& part : scope.parts) {
            const ReproducedCell& apart = cell(patient(with_entries(
                cais_cell(model, part, "cais-uncoordinated"), scope.merge_entries.back())));
            const ReproducedCell& together =
                cell(with_entries(cais_cell(model, part, "cais"), kCaisMergeEntries));
            needs.apart_kb = std::max(needs.apart_kb, need_kb(apart));
            needs.together_kb = std::max(needs.together_kb, need_kb(together));
            needs.apart_us += apart.merge.spread_us;
            needs.together_us += together.merge.spread_us;
            ++cells;
            table.rows.push_back(
                {{model.name, part},
                 {need_kb(apart), need_kb(together), apart.merge.spread_us,
                  together.merge.spread_us, apart.merge.longest_us, together.merge.longest_us}});
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
         {"of unlimited, 1 ms"},
         {"coordinated µs", NumberKind::time},
         {"of unlimited, 1 ms"}}};
    for (const std::string& part : scope.few_parts)
        for (const int entries : scope.merge_entries) {
            FigureTable::Row row{{part, size_text(entries)}};
            for (const std::string_view system : {"cais-uncoordinated", "cais"}) {
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
    constexpr double kHardly = 1.1;  // share of the time with all entries needed
    bool holds = false;
    std::string found;
    for (const FigureTable::Row& row : curve.rows) {
        if (row.labels[0] != curve.rows.front().labels[0]) continue;
        const double apart = row.values[1].value_or(0);
        const double together = row.values[3].value_or(0);
        const bool chosen = row.labels[1] == size_text(kCaisMergeEntries);
        if (chosen) holds = apart > kHardly && together > 0 && together < kHardly;
        if (chosen || &row == &curve.rows.front())
            found += fmt::format("{}{} entries: {:.2f} of the time without, {:.2f} with",
                                 found.empty() ? "" : "; ", row.labels[1], apart, together);
    }
    return cais_paper().claim("table", "without coordination 40 KB cost time, with it hardly",
                              holds, std::move(found));
}

std::vector<PublishedClaim> claims_of(const Needs& needs, const FigureTable& curve) {
    constexpr double kSeveral = 3;  // times
    const auto claim = [](const char* what, bool holds, std::string found) {
        return cais_paper().claim("table", what, holds, std::move(found));
    };
    return {claim("coordination shrinks the table needed several times",
                  needs.apart_kb > kSeveral * needs.together_kb,
                  fmt::format("{:.0f} to {:.0f} KB a port", needs.apart_kb, needs.together_kb)),
            claim("coordination shrinks the spread of requests several times",
                  needs.apart_us > kSeveral * needs.together_us,
                  fmt::format("{:.1f} to {:.1f} µs", needs.apart_us, needs.together_us)),
            claim("coordinated, a port needs less than 40 KB",
                  needs.together_kb > 0 && needs.together_kb < 40,
                  fmt::format("{:.1f} KB", needs.together_kb)),
            claim("coordinated, requests spread over less than 3 µs",
                  needs.together_us > 0 && needs.together_us < 3,
                  fmt::format("{:.1f} µs", needs.together_us)),
            small_costs(curve)};
}

// The all-reduce: hardware as in validation/published_collectives.csv.

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

struct Measured {
    const char* machine;
    std::int64_t bytes;
    double bus;  ///< GB/s, as nccl-tests counts it
};
constexpr Measured kMeasured[] = {
    {"dgx-h100", 8 * kGiB, 476}, {"dgx-h200", 8 * kGiB, 475}, {"dgx-h800", 8 * kGiB, 215}};

double bus_of(const char* machine, std::int64_t bytes, const Lookup& cell) {
    CellKey key{"", kCaisGpus, bytes, "", "nvls"};
    key.work = CellWork::all_reduce;
    key.machine = machine;
    const Ps time = cell(key).time;
    if (time <= 0) return 0;
    const double moved = 2.0 * (kCaisGpus - 1) / kCaisGpus * static_cast<double>(bytes);
    return moved / (static_cast<double>(time) * 1e-12) / 1e9;
}

}  // namespace

FigureResult cais_table(const CaisScope& scope, const Lookup& cell) {
    FigureTable table{"table",
                      "What a port's table needs, and from a line's first request to its last",
                      {"model", "sub-layer"},
                      {{"uncoordinated KB", NumberKind::size},
                       {"coordinated KB", NumberKind::size},
                       {"uncoordinated µs, mean", NumberKind::time},
                       {"coordinated µs, mean", NumberKind::time},
                       {"uncoordinated µs, most", NumberKind::time},
                       {"coordinated µs, most", NumberKind::time}}};
    const Needs needs = add_needs(scope, cell, table);
    FigureTable curve = curve_of(scope, cell);
    const double saved = needs.apart_kb > 0 ? 1 - needs.together_kb / needs.apart_kb : 0;
    return {
        {cais_paper().number("table", "KB a port needs, uncoordinated, largest", needs.apart_kb),
         cais_paper().number("table", "of that, what coordination saves", saved),
         cais_paper().number("table", "µs between requests, uncoordinated, mean", needs.apart_us)},
        claims_of(needs, curve),
        {std::move(table), curve}};
}

FigureResult cais_utilisation(const CaisScope& scope, const Lookup& cell) {
    const std::vector<std::string> systems{"cais-base", "cais-partial", "cais"};
    FigureTable table{
        "utilisation", "Share of the time in which links carry flits", {"model", "sub-layer"}};
    for (const std::string& system : systems) table.columns.push_back({system, NumberKind::share});
    for (const std::string& system : systems)
        table.columns.push_back({system + ", busier way", NumberKind::share});
    for (const CaisModel& model : scope.models)
        for (const std::string& part : scope.parts) {
            FigureTable::Row row{{model.name, part}};
            for (const std::string& system : systems)
                row.values.push_back(cell(cais_cell(model, part, system)).link_use);
            for (const std::string& system : systems) {
                const ReproducedCell& one = cell(cais_cell(model, part, system));
                row.values.push_back(
                    share_of(static_cast<double>(one.busier_way), static_cast<double>(one.time))
                        .value_or(0));
            }
            table.rows.push_back(std::move(row));
        }
    FigureResult result;
    std::vector<double> means;
    for (std::size_t i = 0; i < systems.size(); ++i) {
        means.push_back(mean_of(column_of(table, i)).value_or(0));
        result.numbers.push_back(
            cais_paper().number("utilisation", "links in use, " + systems[i], means[i]));
    }
    result.claims = {cais_paper().claim(
        "utilisation", "rises from CAIS-Base to CAIS-Partial to CAIS",
        means[0] < means[1] && means[1] < means[2],
        fmt::format("{:.1f}, {:.1f}, {:.1f} %", 100 * means[0], 100 * means[1], 100 * means[2]))};
    result.tables.push_back(std::move(table));
    return result;
}

FigureResult cais_nvls(const CaisScope& scope, const Lookup& cell) {
    constexpr double kWithin = 0.04;  // the paper's mean error is 3.87 %
    FigureTable table{"nvls",
                      "NVLS all-reduce of 8 GPUs: bus bandwidth, GB/s",
                      {"machine", "MiB"},
                      {{"here", NumberKind::size}, {"measured", NumberKind::size}}};
    const auto add = [&](const char* machine, std::int64_t bytes, std::optional<double> measured) {
        const double here = bus_of(machine, bytes, cell);
        table.rows.push_back({{machine, fmt::format("{}", bytes >> 20)}, {here, measured}});
        return here;
    };
    double error = 0;
    double rows = 0;
    for (const std::int64_t bytes : scope.all_reduce)
        if (bytes != kMeasured[0].bytes) add(kMeasured[0].machine, bytes, std::nullopt);
    for (const Measured& one : kMeasured) {
        if (one.bytes > scope.all_reduce.back()) continue;
        error += std::abs(add(one.machine, one.bytes, one.bus) / one.bus - 1);
        ++rows;
    }
    FigureResult result;
    if (rows > 0)
        result.claims = {cais_paper().claim(
            "nvls", "within 3.87 % of hardware on average", error / rows <= kWithin,
            fmt::format("{:.2f} % over {} measurements", 100 * error / rows, rows))};
    result.tables.push_back(std::move(table));
    return result;
}

}  // namespace moehub
