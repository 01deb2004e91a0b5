/// How text for people is laid out: what the terminal shows, how wide it is, and what fits in that
/// width: sentences, bars, aligned tables, maps of numbers.
#pragma once
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct HeatChart;

/// True when the stream is a terminal and NO_COLOR is not set to something.
bool wants_colour(std::FILE* stream);

inline constexpr std::size_t kLeastBar = 8;  ///< columns of a bar where there is little room

struct TextStyle {
    static constexpr int kNoLimit = 1 << 20;  ///< files and pipes get everything

    bool colour = false;   ///< bold titles, coloured cells
    int width = kNoLimit;  ///< columns that a line may take

    /// Room for a bar beside `taken` columns: at most `most`, and never none.
    int bar_width(int most, std::size_t taken) const;
};

/// Bytes of the UTF-8 character that begins there.
std::size_t character_size(std::string_view text, std::size_t at);

/// The text as lines of at most so many columns: broken at blanks, which go; where a word alone is
/// too long, after a comma, or else anywhere. At least one line.
std::vector<std::string> broken(std::string_view text, std::size_t width);

/// Lines that are too wide are broken, those after the first as far in as the line's own words
/// begin (its last column, where it has several). A sentence that goes on in the next line takes
/// that along. Escape sequences take no room.
std::string fitted(std::string_view text, int width);

// Text bars, whole or divided into parts.

struct BarPart {
    double value = 0;       ///< negative counts as 0
    std::string_view mark;  ///< one column wide, repeated
};

/// A bar of eighth blocks, `fraction` (cut to 0..1) of `width` columns long.
std::string bar(double fraction, int width);

/// The parts one after another, on a scale on which `full` is `width` columns; what goes beyond is
/// cut. Ends of parts are rounded, so a bar's length depends on the parts' sum alone, and a part of
/// less than half a column may have none. Empty when `full` is not above 0.
std::string stacked_bar(std::span<const BarPart> parts, double full, int width);

/// A bar drawn on a scale of `full` columns on one of `width`; a mark │ is kept.
std::string shortened_bar(std::string_view bar, std::size_t width, std::size_t full);

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
