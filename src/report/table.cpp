#include "report/table.hpp"

#include "base/utf8.hpp"
#include "report/bar.hpp"
#include "report/table_fit.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::string_view kGap = "  ";

std::string padded(const std::string& cell, std::size_t width, Table::Align align) {
    const std::string blanks(width - std::min(width, display_width(cell)), ' ');
    return align == Table::Align::right ? blanks + cell : cell + blanks;
}

/// The cell in the lines that its column's width asks for.
std::vector<std::string> lines_of(const std::string& cell, const FittedColumn& column) {
    if (column.align == Table::Align::bar && column.width < column.full_width)
        return {
            shortened_bar(cell, column.width, column.full_width)};  // short ones, too: one scale
    if (display_width(cell) <= column.width) return {cell};
    std::vector<std::string> lines = broken(cell, column.width);
    if (column.align == Table::Align::text) return lines;
    return {cut(cell, column.width)};
}

/// Cells of a row, each of one or several lines, side by side; titles stand low, rows high.
std::string lines(const std::vector<std::vector<std::string>>& cells,
                  const std::vector<FittedColumn>& columns, bool low) {
    std::size_t height = 1;
    for (const auto& cell : cells) height = std::max(height, cell.size());
    std::string out;
    for (std::size_t line = 0; line < height; ++line) {
        std::string one;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const std::size_t above = low ? height - cells[i].size() : 0;
            const bool empty = line < above || line - above >= cells[i].size();
            if (i > 0) one += kGap;
            one += padded(empty ? "" : cells[i][line - above], columns[i].width, columns[i].align);
        }
        one.erase(one.find_last_not_of(' ') + 1);
        out += one + "\n";
    }
    return out;
}

std::string bolder(const std::string& text) {
    return "\x1b[1m" + text.substr(0, text.size() - 1) + "\x1b[0m\n";
}

std::string note(const std::vector<std::string>& dropped, int width) {
    if (dropped.empty()) return "";
    return fitted(
        fmt::format("Not in {} columns: {}; a wider terminal, less -S or --json has all.\n", width,
                    fmt::join(dropped, ", ")),
        width);
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
    if (cells.size() > columns_.size()) throw std::logic_error("a table row has too many cells");
    cells.resize(columns_.size());
    for (auto& cell : cells) cell = printable(cell);
    rows_.push_back(std::move(cells));
}

std::string Table::text(const TextStyle& style) const {
    const FittedTable fit = fit_table(columns_, rows_, style.width);
    std::vector<std::vector<std::string>> titles;
    for (const FittedColumn& column : fit.columns) titles.push_back(column.title);
    std::string out = lines(titles, fit.columns, true);
    if (style.colour) out = bolder(out);
    for (std::size_t i = 0; i < fit.columns.size(); ++i) {
        if (i > 0) out += kGap;
        for (std::size_t j = 0; j < fit.columns[i].width; ++j) out += "─";
    }
    out += "\n";
    for (const auto& row : rows_) {
        std::vector<std::vector<std::string>> cells;
        for (const FittedColumn& column : fit.columns)
            cells.push_back(lines_of(row[column.index], column));
        out += lines(cells, fit.columns, false);
    }
    return out + note(fit.dropped, style.width);
}

}  // namespace moehub
