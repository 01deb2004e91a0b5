/// From a command line to what it asks for.
#pragma once
#include "cli/command.hpp"

namespace moehub {

/// A command to run, its options filled in; or text to print (--help, --version); or neither,
/// when nothing was typed.
struct Asked {
    const Command* command = nullptr;
    std::string text;
};

/// Throws InputError when the command line is wrong: the unknown command or option with the
/// nearest known name, otherwise the parser's own words.
Asked parse_command_line(const Program& program, int argc, char** argv);

}  // namespace moehub
