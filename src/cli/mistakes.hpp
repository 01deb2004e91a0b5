/// What was wrong with the command line, in one line.
#pragma once
#include "cli/command.hpp"

namespace moehub {

/// For arguments that nobody took, one at least: what is unknown, with the nearest known name.
/// `command` is the one they stand behind; null: none was named.
std::string explain_strays(const Program& program, const Command* command,
                           const std::vector<std::string>& strays);

}  // namespace moehub
