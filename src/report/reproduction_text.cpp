#include "report/reproduction.hpp"
#include "report/table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kBarWidth = 32;

/// A block for each column that ours fills, and a line where the paper's ends.
std::string bar_against(double ours, double paper, double full) {
    const auto column = [&](double value) {
        return std::lround(std::clamp(value / full, 0.0, 1.0) * (kBarWidth - 1));
    };
    std::string out;
    for (long i = 0; i <= std::max(column(ours), column(paper)); ++i)
        out += i == column(paper) ? "│" : i <= column(ours) ? "█" : " ";
    return out;
}

/// One scale for all ratios; shares have their own, from nothing to all; of anything else each.
double largest_ratio(const std::vector<PublishedNumber>& numbers) {
    double most = 1;
    for (const PublishedNumber& one : numbers)
        if (one.kind == NumberKind::ratio) most = std::max({most, one.ours, one.paper});
    return most;
}

double full_scale(const PublishedNumber& one, double most_ratio) {
    switch (one.kind) {
        case NumberKind::ratio:
            return most_ratio;
        case NumberKind::share:
            return 1;
        case NumberKind::time:
        case NumberKind::size:
            break;
    }
    return std::max(one.ours, one.paper);
}

std::string numbers_text(const Reproduction& all, const TextStyle& style) {
    using Align = Table::Align;
    std::vector<Table::Column> columns{
        {"figure", Align::left}, {all.paper, Align::text}, {"paper"}, {"here"}, {"here/paper"}};
    for (std::size_t i = 1; i < all.readings.size(); ++i)
        columns.insert(columns.end(), {{all.readings[i].name}, {"/paper"}});
    columns.push_back({"█ here  │ paper", Align::bar});
    Table table(columns);
    const double most = largest_ratio(all.numbers);
    for (const PublishedNumber& one : all.numbers) {
        std::vector<std::string> cells{one.figure, one.what, published_text(one.kind, one.paper)};
        for (std::size_t i = 0; i == 0 || i < all.readings.size(); ++i) {
            if (!one.is_read(i)) {
                cells.insert(cells.end(), {"–", "–"});
                continue;
            }
            cells.push_back(published_text(one.kind, one.read(i)));
            cells.push_back(fmt::format("{:.2f}", one.read(i) / one.paper));
        }
        cells.push_back(bar_against(one.ours, one.paper, full_scale(one, most)));
        table.add(cells);
    }
    return table.text(style);
}

/// Nothing to say where there is one reading.
std::string readings_text(const Reproduction& all) {
    if (all.readings.size() < 2 || all.numbers.empty()) return "";
    std::string out = "What the paper leaves open, read in several ways; \"here\" is the first\n";
    for (std::size_t i = 0; i < all.readings.size(); ++i)
        out += fmt::format("  {}: {}\n      {} of {} numbers within 10 %\n", all.readings[i].name,
                           all.readings[i].what, explained_by(all, i).numbers,
                           explained_by(all, i).of);
    return out;
}

std::string claims_text(const Reproduction& all) {
    std::string out = "What the paper says without a number\n";
    for (const PublishedClaim& one : all.claims)
        out += fmt::format("  {} {}: {}\n      {}\n", one.holds ? "✓" : "✗", one.figure, one.what,
                           one.found);
    return out;
}

std::string table_text(const FigureTable& figure, const TextStyle& style) {
    std::vector<Table::Column> columns;
    for (const std::string& label : figure.labels) columns.push_back({label, Table::Align::left});
    for (const FigureTable::Column& column : figure.columns) columns.push_back({column.title});
    Table table(columns);
    for (const FigureTable::Row& row : figure.rows) {
        table.add(cells_of(figure, row));
    }
    std::string out = fmt::format("{}: {}\n\n{}", figure.figure, figure.title, table.text(style));
    for (const std::string& note : figure.notes) out += fmt::format("– {}\n", note);
    return out;
}

/// Only where the cells are the paper's: a mean of others needs no excuse.
std::string reasons_text(const Reproduction& all) {
    std::string out;
    for (const PublishedNumber& one : all.numbers)
        if (!one.reason.empty())
            out += fmt::format("  {}, {}: {}\n", one.figure, one.what, one.reason);
    for (const PublishedClaim& one : all.claims)
        if (!one.reason.empty())
            out += fmt::format("  {}, {}: {}\n", one.figure, one.what, one.reason);
    return out.empty() ? "" : fmt::format("\nWhy they differ (more than 10 %)\n{}", out);
}

std::string head_text(const Reproduction& all) {
    std::string out =
        fmt::format("{} (arXiv {}): its evaluation, published and here\n", all.title, all.arxiv);
    if (all.quick)
        out +=
            "Quick: a few cells of each figure. Means over other cells than the paper's are not "
            "comparable with it.\n";
    for (const std::string& sentence : all.setup) out += fmt::format("  {}\n", sentence);
    return out;
}

}  // namespace

Explained explained_by(const Reproduction& all, std::size_t reading) {
    Explained explained;
    for (const PublishedNumber& one : all.numbers) {
        if (one.is_read(reading)) ++explained.of;
        if (!one.as_published(reading)) continue;
        ++explained.numbers;
        bool alone = one.otherwise.size() + 1 >= all.readings.size();  // all have read it
        for (std::size_t other = 0; other <= one.otherwise.size(); ++other)
            alone = alone && (other == reading || !one.as_published(other));
        if (alone) explained.alone.push_back(fmt::format("{}, {}", one.figure, one.what));
    }
    return explained;
}

std::string number_text(NumberKind kind, const std::optional<double>& value) {
    if (!value) return "–";
    switch (kind) {
        case NumberKind::share:
            return percent(*value);
        case NumberKind::time:
        case NumberKind::size:
            return tenths(*value);
        case NumberKind::ratio:
            break;
    }
    return fmt::format("{:.2f}", *value);
}

std::vector<std::string> cells_of(const FigureTable& figure, const FigureTable::Row& row) {
    std::vector<std::string> cells = row.labels;
    for (std::size_t i = 0; i < row.values.size(); ++i)
        cells.push_back(
            row.mean && !row.values[i] ? "" : number_text(figure.columns[i].kind, row.values[i]));
    return cells;
}

std::string published_text(NumberKind kind, double value) {
    return kind == NumberKind::ratio ? fmt::format("{:.3f}", value) : number_text(kind, value);
}

std::string reproduction_text(const Reproduction& all, const TextStyle& style) {
    std::string out = head_text(all);
    if (!all.numbers.empty()) out += fmt::format("\n{}", numbers_text(all, style));
    if (const std::string read = readings_text(all); !read.empty())
        out += fmt::format("\n{}", read);
    if (!all.claims.empty()) out += fmt::format("\n{}", claims_text(all));
    for (const FigureTable& table : all.tables)
        out += fmt::format("\n{}", table_text(table, style));
    return all.quick ? out : out + reasons_text(all);
}

}  // namespace moehub
