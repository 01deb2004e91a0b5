/// Commands of the program: each asks a question and puts the answer where it is wanted; two say
/// what the program is. command_line.cpp alone turns them into a parser.
#pragma once
#include "answers/question.hpp"
#include "report/text_style.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace moehub {

struct Command {
    std::string name;
    std::string doc;
    std::string overview;
    std::string example;
    Options options;
    /// Called with what was said, and the whole line that was typed.
    std::function<void(const Said&, const std::string& line)> run;
};

struct Application {
    std::string name;
    std::string doc;
    std::string version;
    std::string example;
    std::vector<Command> commands;
};

Command command_of(const Question& question);
/// These print what the program consists of, and refer to it.
Command completion_command(const Application& application);  ///< for shells
Command man_command(const Application& application);         ///< for man

/// Writes the text to standard output when `path` is empty, otherwise to that file: into a
/// temporary neighbour first, then renamed, so that a reader sees the old file or the whole new
/// one. Pipes and devices are written directly. Throws InputError naming the path, or
/// std::system_error(EPIPE) when nobody reads standard output any more.
void put(std::string_view text, const std::string& path);

/// How text for people is laid out that put() takes to `path`. On a terminal as wide as that is;
/// elsewhere as wide as COLUMNS says, if it is set, and without limit if it is not. A file has no
/// limit and no colour.
TextStyle style_for(const std::string& path);

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
Parsed parse_command_line(const Application& application, int argc, char** argv);

}  // namespace moehub
