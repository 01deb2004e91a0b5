#include "report/table_fit.hpp"

#include "base/utf8.hpp"

#include <algorithm>

namespace moehub {
namespace {

constexpr std::size_t kGapWidth = 2;
constexpr std::size_t kLeastBar = 8;
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
    std::size_t sum = kGapWidth * (columns.size() - 1);
    for (const FittedColumn& column : columns) sum += column.width;
    return sum;
}

/// The widest columns of that kind give way until the table fits or none can any more.
void narrow(std::vector<FittedColumn>& columns, Table::Align align, std::size_t least,
            std::size_t width) {
    while (total(columns) > width) {
        FittedColumn* widest = nullptr;
        for (FittedColumn& column : columns)
            if (column.align == align && column.width > least &&
                (widest == nullptr || column.width > widest->width))
                widest = &column;
        if (widest == nullptr) return;
        widest->width -= std::min(total(columns) - width, widest->width - least);
        if (align == Table::Align::text && widest->width > least &&
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
                            const std::vector<Table::Column>& of) {
    std::size_t last = columns.size() - 1;
    for (std::size_t i = columns.size() - 1; i > 0; --i)
        if (of[columns[i].index].rank > of[columns[last].index].rank) last = i;
    return last;
}

}  // namespace

std::string cut(const std::string& cell, std::size_t width) {
    std::string out;
    for (std::size_t at = 0; at < cell.size();) {
        std::size_t end = at + 1;
        while (end < cell.size() && (static_cast<unsigned char>(cell[end]) & 0xc0) == 0x80) ++end;
        const std::string character = cell.substr(at, end - at);
        if (display_width(out) + display_width(character) + 1 > width) break;
        out += character;
        at = end;
    }
    return out + "…";
}

FittedTable fit_table(const std::vector<Table::Column>& columns,
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
        narrow(tried, Table::Align::bar, kLeastBar, width);
        narrow(tried, Table::Align::text, kLeastText, width);
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
        const bool bars = column.align == Table::Align::bar;
        const std::string& title = column.title.front();
        fit.dropped.insert(fit.dropped.begin(), bars ? "bars" : title.empty() ? "notes" : title);
        fit.columns.erase(fit.columns.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    return fit;
}

}  // namespace moehub
