/// UTF-8 text: is it valid, how wide is it on a terminal, and how to print it safely.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace moehub {

/// Offset of the first byte that is not part of well-formed UTF-8; text.size() when all of it is.
std::size_t first_bad_utf8(std::string_view text);

/// Terminal columns the text takes. Combining marks count 0, wide East Asian characters 2,
/// everything else (µ, ×, block characters) 1. Bytes that are not UTF-8 count 1 each.
std::size_t display_width(std::string_view text);

/// The text with control characters and bytes that are not UTF-8 written as \n, \t or \xHH:
/// safe to print, always one line.
std::string printable(std::string_view text);

}  // namespace moehub
