/// From a command line to what it asks for.
#pragma once
#include "cli/command.hpp"

namespace moehub {

/// A command to run, with what was said of its options; or text to print (--help, --version); or
/// neither, when nothing was typed.
struct Parsed {
    const Command* command = nullptr;
    Said said = {};
    std::string line = {};  ///< the whole line that was typed, fit for a shell
    std::string text = {};
};

/// Throws InputError when the command line is wrong: the unknown command or option with the
/// nearest known name, otherwise the parser's own words.
Parsed parse_command_line(const Program& program, int argc, char** argv);

}  // namespace moehub
