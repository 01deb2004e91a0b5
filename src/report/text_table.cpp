// Aligned tables for the terminal.
#include "base/utf8.hpp"
#include "report/text_style.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

struct FittedColumn {
    std::size_t index = 0;           ///< in the table
    std::vector<std::string> title;  ///< one line, or two
    TextTable::Align align = TextTable::Align::right;
    std::size_t width = 0;
    std::size_t full_width = 0;  ///< with all the room it wants
};

struct FittedTable {
    std::vector<FittedColumn> columns;  ///< columns that are shown, in order
    std::vector<std::string> dropped;   ///< titles of the others
};

constexpr std::string_view kGap = "  ";
constexpr std::size_t kLeastText = 20;
constexpr std::size_t kLeastCut = 4;

/// In two lines, as narrow as can be; one where it has no blank.
std::vector<std::string> two_lines(const std::string& title) {
    std::vector<std::string> best{title};
    std::size_t narrowest = display_width(title);
    for (std::size_t at = title.find(' '); at != title.npos; at = title.find(' ', at + 1)) {
        const std::string first = title.substr(0, at);
        const std::string second = title.substr(at + 1);
        const std::size_t width = std::max(display_width(first), display_width(second));
        if (width >= narrowest) continue;
        narrowest = width;
        best = {first, second};
    }
    return best;
}

std::size_t title_width(const std::vector<std::string>& lines) {
    std::size_t width = 0;
    for (const std::string& line : lines) width = std::max(width, display_width(line));
    return width;
}

std::size_t total(const std::vector<FittedColumn>& columns) {
    std::size_t sum = kGap.size() * (columns.size() - 1);
    for (const FittedColumn& column : columns) sum += column.width;
    return sum;
}

/// The widest columns of that kind give way until the table fits or none can any more.
void narrow(std::vector<FittedColumn>& columns, TextTable::Align align, std::size_t least,
            std::size_t width) {
    while (total(columns) > width) {
        FittedColumn* widest = nullptr;
        for (FittedColumn& column : columns)
            if (column.align == align && column.width > least &&
                (widest == nullptr || column.width > widest->width))
                widest = &column;
        if (widest == nullptr) return;
        widest->width -= std::min(total(columns) - width, widest->width - least);
        if (align == TextTable::Align::text && widest->width > least &&
            title_width(widest->title) > widest->width)
            widest->title = two_lines(widest->title[0]);
    }
}

std::vector<FittedColumn> with_short_titles(std::vector<FittedColumn> columns,
                                            const std::vector<std::size_t>& cells) {
    for (FittedColumn& column : columns) {
        const std::size_t cell = cells[column.index];
        if (title_width(column.title) <= cell) continue;
        column.title = two_lines(column.title.front());
        column.width = std::max(cell, title_width(column.title));
    }
    return columns;
}

std::size_t least_important(const std::vector<FittedColumn>& columns,
                            const std::vector<TextTable::Column>& of) {
    std::size_t last = columns.size() - 1;
    for (std::size_t i = columns.size() - 1; i > 0; --i)
        if (of[columns[i].index].rank > of[columns[last].index].rank) last = i;
    return last;
}

/// The cell in at most so many columns; what is cut off shows as "…".
std::string cut(const std::string& cell, std::size_t width) {
    std::string out;
    for (std::size_t at = 0; at < cell.size();) {
        const std::string character = cell.substr(at, character_size(cell, at));
        if (display_width(out) + display_width(character) + 1 > width) break;
        out += character;
        at += character.size();
    }
    return out + "…";
}

/// Where the table is too wide, first titles take two lines, then bars get shorter and text
/// narrower, then columns go: the highest rank first, of equal ones the last; the first column
/// stays.
FittedTable fit_table(const std::vector<TextTable::Column>& columns,
                      const std::vector<std::vector<std::string>>& rows, int limit) {
    const auto width = static_cast<std::size_t>(std::max(limit, 1));
    std::vector<std::size_t> cells(columns.size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i)
            cells[i] = std::max(cells[i], display_width(row[i]));
    FittedTable fit;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::size_t full = std::max(cells[i], display_width(columns[i].title));
        fit.columns.push_back({i, {columns[i].title}, columns[i].align, full, full});
    }
    while (total(fit.columns) > width) {
        std::vector<FittedColumn> tried = with_short_titles(fit.columns, cells);
        narrow(tried, TextTable::Align::bar, kLeastBar, width);
        narrow(tried, TextTable::Align::text, kLeastText, width);
        if (total(tried) <= width) {
            fit.columns = std::move(tried);
            break;
        }
        if (fit.columns.size() == 1) {
            fit.columns = std::move(tried);
            fit.columns[0].width = std::max(kLeastCut, width);
            break;
        }
        const std::size_t gone = least_important(fit.columns, columns);
        const FittedColumn& column = fit.columns[gone];
        const bool bars = column.align == TextTable::Align::bar;
        const std::string& title = column.title.front();
        fit.dropped.insert(fit.dropped.begin(), bars ? "bars" : title.empty() ? "notes" : title);
        fit.columns.erase(fit.columns.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    return fit;
}

std::string padded(const std::string& cell, std::size_t width, TextTable::Align align) {
    const std::string blanks(width - std::min(width, display_width(cell)), ' ');
    return align == TextTable::Align::right ? blanks + cell : cell + blanks;
}

/// The cell in the lines that its column's width asks for.
std::vector<std::string> lines_of(const std::string& cell, const FittedColumn& column) {
    if (column.align == TextTable::Align::bar && column.width < column.full_width)
        return {
            shortened_bar(cell, column.width, column.full_width)};  // short ones, too: one scale
    if (display_width(cell) <= column.width) return {cell};
    std::vector<std::string> lines = broken(cell, column.width);
    if (column.align == TextTable::Align::text) return lines;
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

void TextTable::add(std::vector<std::string> cells) {
    if (cells.size() > columns_.size()) throw std::logic_error("a table row has too many cells");
    cells.resize(columns_.size());
    for (auto& cell : cells) cell = printable(cell);
    rows_.push_back(std::move(cells));
}

std::string TextTable::text(const TextStyle& style) const {
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
