#include "study/reproduce_dysharp_leads.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::size_t kFirstLead = 1;  ///< column of the first baseline

std::optional<double> lead_of(const FigureTable::Row& row) {
    return geometric_mean_of({row.values.begin() + kFirstLead, row.values.end()});
}

/// Of which series a row is: its labels but the last; empty where there is only one.
std::string series_of(const FigureTable::Row& row) {
    return fmt::format("{}", fmt::join(row.labels.begin(), std::prev(row.labels.end()), ", "));
}

}  // namespace

FigureTable leads_table(std::string figure, std::string title, std::vector<std::string> labels,
                        std::span<const std::string_view> baselines) {
    FigureTable table{std::move(figure), std::move(title), std::move(labels), {}, {}, {}};
    table.columns.push_back({fmt::format("{} µs", kDysharp), NumberKind::time});
    for (const std::string_view baseline : baselines)
        table.columns.push_back({fmt::format("over {}", baseline), NumberKind::ratio});
    return table;
}

void note_refusal(const std::vector<std::string>& labels, const ReproducedCell& cell,
                  FigureTable& table) {
    if (!cell.refusal.empty())
        table.notes.push_back(fmt::format("{}: {}", fmt::join(labels, ", "), cell.refusal));
}

void add_leads(std::vector<std::string> labels, std::span<const std::string_view> baselines,
               Ps ReproducedCell::*time, const CellUnder& cell, FigureTable& table) {
    const ReproducedCell& own = cell(kDysharp);
    note_refusal(labels, own, table);
    FigureTable::Row row{
        labels, {own.*time > 0 ? std::optional(to_us(own.*time)) : std::nullopt}, false};
    for (const std::string_view baseline : baselines) {
        const ReproducedCell& other = cell(baseline);
        note_refusal(labels, other, table);
        row.values.push_back(faster(other.*time, own.*time));
    }
    table.rows.push_back(std::move(row));
}

PublishedClaim lead_grows(const FigureTable& table, std::string what) {
    PublishedClaim claim{table.figure, std::move(what), !table.rows.empty(), "", ""};
    std::string series;
    std::optional<double> before;
    for (const FigureTable::Row& row : table.rows) {
        const std::optional<double> lead = lead_of(row);
        const bool first = before == std::nullopt || series_of(row) != series;
        if (!lead || (!first && *lead <= *before)) claim.holds = false;
        if (first) {
            series = series_of(row);
            claim.found += fmt::format("{}{}", claim.found.empty() ? "" : "; ",
                                       series.empty() ? "" : series + ": ");
        }
        claim.found +=
            fmt::format("{}{} {:.2f}×", first ? "" : ", ", row.labels.back(), lead.value_or(0));
        before = lead.value_or(0);
    }
    return claim;
}

}  // namespace moehub
