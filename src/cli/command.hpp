/// Commands of the program: each asks a question and puts the answer where it is wanted; two say
/// what the program is. command_line.cpp alone turns them into a parser.
#pragma once
#include "answers/question.hpp"

#include <functional>
#include <string>
#include <vector>

namespace moehub {

struct Command {
    std::string name;
    std::string doc;
    std::string overview;
    std::string example;
    Options options;
    /// With what was said, and the whole line that was typed.
    std::function<void(const Said&, const std::string& line)> run;
};

struct Program {
    std::string name;
    std::string doc;
    std::string version;
    std::string example;
    std::vector<Command> commands;
};

Command command_of(const Question& question);
/// Both print what the program consists of, and refer to it.
Command completion_command(const Program& program);  ///< for shells
Command man_command(const Program& program);         ///< for man

}  // namespace moehub
