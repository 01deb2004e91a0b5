/// Where a command's result goes: standard output, or a file that is replaced in one step.
#pragma once
#include "answers/question.hpp"
#include "report/text_style.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Before long work. Throws InputError when a file could not be written now, has no name or that of
/// standard output, or would replace another output or one of `inputs`, or lie in a folder among
/// these; devices may come twice.
void require_writable(const std::vector<OutputFile>& files,
                      const std::vector<std::string>& inputs = {});

}  // namespace moehub
