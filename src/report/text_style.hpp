/// How text for people is laid out: what the terminal shows, and how wide it is.
#pragma once
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

/// True when the stream is a terminal and NO_COLOR is not set to something.
bool wants_colour(std::FILE* stream);

struct TextStyle {
    static constexpr int kNoLimit = 1 << 20;  ///< files and pipes get everything

    bool colour = false;   ///< bold titles, coloured cells
    int width = kNoLimit;  ///< columns that a line may take

    /// Room for a bar beside `taken` columns: at most `most`, and never none.
    int bar_width(int most, std::size_t taken) const;
};

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

}  // namespace moehub
