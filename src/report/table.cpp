#include "report/table.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr std::string_view kGap = "  ";

std::string padded(const std::string& cell, std::size_t width, Table::Align align) {
    const std::string blanks(width - std::min(width, display_width(cell)), ' ');
    return align == Table::Align::left ? cell + blanks : blanks + cell;
}

std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                 const std::vector<Table::Column>& columns) {
    std::string out;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (i > 0) out += kGap;
        out += padded(cells[i], widths[i], columns[i].align);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
    if (cells.size() > columns_.size()) throw std::logic_error("a table row has too many cells");
    cells.resize(columns_.size());
    for (auto& cell : cells) cell = printable(cell);
    rows_.push_back(std::move(cells));
}

std::string Table::text(bool bold_titles) const {
    std::vector<std::string> titles;
    std::vector<std::size_t> widths;
    for (const auto& column : columns_) {
        titles.push_back(column.title);
        widths.push_back(display_width(column.title));
    }
    for (const auto& row : rows_)
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], display_width(row[i]));

    const auto head = line(titles, widths, columns_);
    std::string out = bold_titles ? "\x1b[1m" + head + "\x1b[0m\n" : head + "\n";
    for (std::size_t i = 0; i < widths.size(); ++i) {
        if (i > 0) out += kGap;
        for (std::size_t j = 0; j < widths[i]; ++j) out += "─";
    }
    out += "\n";
    for (const auto& row : rows_) out += line(row, widths, columns_) + "\n";
    return out;
}

}  // namespace moehub
