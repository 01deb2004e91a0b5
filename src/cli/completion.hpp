/// Completion of command lines, written from the same data that they are parsed by; a file for each
/// shell.
#pragma once
#include "cli/command.hpp"

#include <string>

namespace moehub {

std::string bash_completion(const Program& program);
std::string zsh_completion(const Program& program);
std::string fish_completion(const Program& program);

}  // namespace moehub
