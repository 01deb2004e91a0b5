/// Aligned tables and maps of numbers for the terminal.
#pragma once
#include "report/chart.hpp"
#include "report/text_style.hpp"

#include <string>
#include <vector>

namespace moehub {

/// Columns of text, padded to the widest cell. Cells are escaped: whatever they hold, a row takes
/// one line, more only where its text must be broken to fit.
class TextTable {
  public:
    /// `text` stands left and may be broken over lines, a `bar` may get shorter.
    enum class Align { left, right, text, bar };
    struct Column {
        std::string title;
        Align align = Align::right;
        int rank = 0;  ///< where there is no room, columns of the highest rank go first
    };

    explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

    /// Fewer cells than columns leave the rest empty; more is a defect (std::logic_error).
    void add(std::vector<std::string> cells);

    /// Titles, a rule, the rows; every line ends in a newline, none ends in blanks or is wider than
    /// the style's width. A last line says which columns had no room.
    std::string text(const TextStyle& style = {}) const;

  private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// Title, lines of shaded blocks or of coloured cells with labels in front of rows, and what the
/// shades mean; of a map that is larger than people see neighbours are merged. Empty where
/// terminals do not show the map.
std::string heat_text(const HeatChart& chart, const TextStyle& style);

}  // namespace moehub
