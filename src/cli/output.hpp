/// Where a command's result goes: standard output, or a file that is replaced in one step.
#pragma once
#include "report/text_style.hpp"

#include <string>
#include <string_view>

namespace moehub {

/// Writes the text to standard output when `path` is empty, otherwise to that file: into a
/// temporary neighbour first, then renamed, so that a reader sees the old file or the whole new
/// one. Pipes and devices are written directly. Throws InputError naming the path, or
/// std::system_error(EPIPE) when nobody reads standard output any more.
void put(std::string_view text, const std::string& path);

/// How text for people is laid out that put() takes to `path`. On a terminal as wide as that is;
/// elsewhere as wide as COLUMNS says, if it is set, and without limit if it is not. A file has no
/// limit and no colour.
TextStyle style_for(const std::string& path);

}  // namespace moehub
