/// Files that answers go to, checked before the work begins.
#pragma once
#include "answers/question.hpp"

#include <string>
#include <vector>

namespace moehub {

/// Before long work. Throws InputError when a file could not be written now, has no name or that of
/// standard output, or would replace another output or one of `inputs`, or lie in a folder among
/// these; devices may come twice.
void require_writable(const std::vector<OutputFile>& files,
                      const std::vector<std::string>& inputs = {});

}  // namespace moehub
