// The manual page, in roff, from the same data that command lines are parsed by.
#include "cli/command.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::string_view kDate = "2026-11-18";  ///< of the last change to this page

/// A line may not begin with a point or a quote, which are commands, and a minus is no hyphen.
std::string roff(std::string_view text) {
    std::string out;
    bool begins = true;
    for (const char c : text) {
        if (begins && (c == '.' || c == '\'')) out += "\\&";
        begins = c == '\n';
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return out;
}

/// "-o, --output FILE".
std::string heading(const Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : names_of(option)) names.push_back("\\fB" + roff(name) + "\\fR");
    const std::string value =
        type_of(option).empty() ? "" : " \\fI" + roff(type_of(option)) + "\\fR";
    if (is_argument(option)) return "\\fI" + roff(type_of(option)) + "\\fR";
    return fmt::format("{}{}", fmt::join(names, ", "), value);
}

std::string option_text(const Option& option) {
    std::string doc = option.doc;
    if (const std::string& usual = option.target.usual; !usual.empty())
        doc += fmt::format("; without it {}", usual);
    return fmt::format(".TP\n{}\n{}\n", heading(option), roff(doc));
}

std::string command_text(const Application& program, const Command& command) {
    std::string out = fmt::format(".SS \"{} {}\"\n{}\n", roff(program.name), roff(command.name),
                                  roff(command.doc));
    for (const Option& option : command.options) out += option_text(option);
    return out + fmt::format(".PP\nExample:\n.PP\n.nf\n  {}\n.fi\n", roff(command.example));
}

constexpr std::string_view kEnd = R"(.SH OUTPUT
Tables, bars and sentences are as wide as the terminal.
Columns that have no room are named below their table.
A pipe or a file gets everything.
With \fB\-\-json\fR a command prints one document; it begins with the name of the command and the
version of its schema.
.SH ENVIRONMENT
.TP
\fBCOLUMNS\fR
width of what is printed where standard output is no terminal; without it there is no limit
.TP
\fBNO_COLOR\fR
set to something: neither bold nor coloured
.SH EXIT STATUS
.TP
\fB0\fR
done
.TP
\fB2\fR
bad input; one line says what was found and what is allowed
.TP
\fB3\fR
a defect of moehub
.TP
\fB130\fR
ended by Ctrl\-C; one line says what was written
)";

}  // namespace

std::string man_page(const Application& program) {
    std::string out =
        fmt::format(".TH MOEHUB 1 \"{}\" \"{}\" \"User Commands\"\n", kDate, roff(program.version));
    const std::size_t colon = program.doc.find(": ");
    out += fmt::format(".SH NAME\n{} \\- {}\n", roff(program.name),
                       roff(program.doc.substr(colon == program.doc.npos ? 0 : colon + 2)));
    out += fmt::format(
        ".SH SYNOPSIS\n\\fB{0}\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR ...]\n.br\n\\fB{0}\\fR "
        "\\fICOMMAND\\fR \\fB\\-\\-help\\fR\n.br\n\\fB{0} \\-\\-version\\fR\n",
        roff(program.name));
    out += ".SH COMMANDS\n";
    for (const Command& command : program.commands) out += command_text(program, command);
    return out + std::string(kEnd);
}

Command man_command(const Application& program) {
    return {"man",
            "Print the manual page, in roff",
            "the manual page",
            "moehub man | man -l -",
            {},
            [&program](const Said&, const std::string&) { put(man_page(program), ""); }};
}

}  // namespace moehub
