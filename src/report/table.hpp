/// Aligned tables for the terminal, and numbers as people read them.
#pragma once
#include "report/text_style.hpp"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// Columns of text, padded to the widest cell. Cells are escaped: whatever they hold, a row takes
/// one line, more only where its text must be broken to fit.
class Table {
  public:
    /// `text` stands left and may be broken over lines, a `bar` may get shorter.
    enum class Align { left, right, text, bar };
    struct Column {
        std::string title;
        Align align = Align::right;
        int rank = 0;  ///< where there is no room, columns of the highest rank go first
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    /// Fewer cells than columns leave the rest empty; more is a defect (std::logic_error).
    void add(std::vector<std::string> cells);

    /// Titles, a rule, the rows; every line ends in a newline, none ends in blanks or is wider than
    /// the style's width. A last line says which columns had no room.
    std::string text(const TextStyle& style = {}) const;

  private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// True when the stream is a terminal and NO_COLOR is not set to something.
bool wants_colour(std::FILE* stream);

/// Three or more significant digits without exponent: 0.0123, 1.23, 45.6, 789, 12,345.
std::string significant(double value);

/// With thousands separated: 1,234,567.
std::string grouped(std::int64_t value);

/// One digit after the point and thousands separated: 1,234.5.
std::string tenths(double value);

/// A fraction as percent with one digit: 0.0123 is "1.2 %". `signed_` writes the plus as well.
std::string percent(double fraction, bool signed_ = false);

/// Picked unit, three digits: "812 ns", "37.5 µs", "2.69 ms", "1.2 s". From seconds.
std::string duration(double seconds);

/// Picked decimal unit: "640 B", "1.07 GB".
std::string byte_size(double bytes);

/// A bar of eighth blocks, `fraction` (cut to 0..1) of `width` columns long.
std::string bar(double fraction, int width);

}  // namespace moehub
