/// Aligned tables for the terminal, and numbers as people read them.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// Columns of text, padded to the widest cell. Cells are escaped, so a table has exactly one
/// line per row whatever they hold.
class Table {
  public:
    enum class Align { left, right };
    struct Column {
        std::string title;
        Align align = Align::right;
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    /// Fewer cells than columns leave the rest empty; more is a defect (std::logic_error).
    void add(std::vector<std::string> cells);

    /// Title line (bold when asked), a rule, one line per row; every line ends in a newline and
    /// none ends in blanks.
    std::string text(bool bold_titles = false) const;

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
