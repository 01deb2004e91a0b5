/// How a table's columns share a line.
#pragma once
#include "report/table.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace moehub {

struct FittedColumn {
    std::size_t index = 0;           ///< in the table
    std::vector<std::string> title;  ///< one line, or two
    Table::Align align = Table::Align::right;
    std::size_t width = 0;
    std::size_t full_width = 0;  ///< with all the room it wants
};

struct FittedTable {
    std::vector<FittedColumn> columns;  ///< that are shown, in order
    std::vector<std::string> dropped;   ///< titles of the others
};

/// Where the table is too wide, first titles take two lines, then bars get shorter and text
/// narrower, then columns go: the highest rank first, of equal ones the last; the first column
/// stays.
FittedTable fit_table(const std::vector<Table::Column>& columns,
                      const std::vector<std::vector<std::string>>& rows, int width);

/// At most so many columns; what is cut off shows as "…".
std::string cut(const std::string& cell, std::size_t width);

}  // namespace moehub
