/// Text bars, whole or divided into parts.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace moehub {

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
