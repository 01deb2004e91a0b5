/// Commands as plain data: their names, options and what they run.
/// command_line.cpp alone turns them into a parser.
#pragma once
#include "request/option.hpp"

#include <functional>
#include <string>
#include <vector>

namespace moehub {

struct Command {
    std::string name;
    std::string doc;
    std::vector<Option> options;
    std::string footer;
    std::function<void()> run;  ///< owns what the options point into
};

struct Program {
    std::string name;
    std::string doc;
    std::string version;
    std::string footer;
    std::vector<Command> commands;
};

}  // namespace moehub
