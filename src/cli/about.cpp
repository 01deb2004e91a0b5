// What the program says of itself, written from the same data that command lines are parsed by: the
// manual page, in roff, and completion for shells.
#include "cli/command.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// What may stand behind an option.
struct OptionValues {
    std::string words;   ///< names of presets, or what is allowed, with blanks between
    bool files = false;  ///< files as well, or alone
    bool list = false;   ///< several with commas between
};

bool is_flag(const Option& option) {
    return option.target.kind == ValueKind::flag;
}

OptionValues values_of(const Option& option) {
    const Target& target = option.target;
    const KindWords& kind = words_of(target.kind);
    std::vector<std::string> words = target.choices;
    if (!kind.presets.empty()) words = preset_names(kind.presets);
    if (target.keys && key_of(option) != "set")  // nouns have hundreds of keys
        for (const std::string& key : target.keys()) words.push_back(key + "=");
    return {fmt::format("{}", fmt::join(words, " ")), kind.files, target.commas};
}

/// The text with what stands for some of its characters instead.
std::string replaced(std::string_view text,
                     const std::vector<std::pair<char, std::string_view>>& by) {
    std::string out;
    for (const char c : text) {
        const auto found =
            std::find_if(by.begin(), by.end(), [c](const auto& one) { return one.first == c; });
        out += found == by.end() ? std::string_view(&c, 1) : found->second;
    }
    return out;
}

// bash

/// Candidates are kept whole: a list's earlier names stand before each of them.
constexpr std::string_view kBashFunctions = R"(_moehub_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
    [ -n "$2" ] && _moehub_files
}
_moehub_files() {
    local file
    while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$cur")
    compopt -o filenames 2> /dev/null
}
_moehub_list() {
    local before="" last=$cur
    case $cur in *,*) before="${cur%,*}," last=${cur##*,} ;; esac
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "$last")
    compopt -o nospace 2> /dev/null
}
)";

constexpr std::string_view kBashBegin = R"(_moehub() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command="" i
    COMPREPLY=()
    if [ "$cur" = "=" ]; then
        cur=""
    elif [ "$prev" = "=" ]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            -*) ;;
            *) command=${COMP_WORDS[i]}; break ;;
        esac
    done
)";

std::string bash_call(const OptionValues& values) {
    if (values.words.empty()) return values.files ? "_moehub_files" : ":";
    return fmt::format("{} '{}'{}", values.list ? "_moehub_list" : "_moehub_words", values.words,
                       values.files && !values.list ? " f" : "");
}

/// Options with values, one pattern each; then what stands alone: other options, or arguments.
std::string bash_case(const Command& command) {
    std::string out = fmt::format("        {})\n            case $prev in\n", command.name);
    std::vector<std::string> names{"--help"};
    std::string argument = ":";
    for (const Option& option : command.options) {
        const OptionValues values = values_of(option);
        if (is_argument(option)) {
            if (argument == ":") argument = bash_call(values);
            continue;
        }
        for (const std::string& name : names_of(option))
            if (name.starts_with("--")) names.push_back(name);
        if (!is_flag(option))
            out += fmt::format("                {}) {}; return ;;\n",
                               fmt::join(names_of(option), " | "), bash_call(values));
    }
    return out + fmt::format(
                     "            esac\n            case $cur in\n"
                     "                -*) _moehub_words '{}' ;;\n"
                     "                *) {} ;;\n            esac\n            ;;\n",
                     fmt::join(names, " "), argument);
}

std::string bash_completion(const Application& application) {
    std::vector<std::string> names;
    for (const Command& command : application.commands) names.push_back(command.name);
    std::string out =
        fmt::format("# bash completion of {0}, as `{0} completion bash` prints it.\n{1}{2}",
                    application.name, kBashFunctions, kBashBegin);
    out +=
        fmt::format("    case $command in\n        \"\") _moehub_words '{} --help --version' ;;\n",
                    fmt::join(names, " "));
    for (const Command& command : application.commands) out += bash_case(command);
    return out + fmt::format("    esac\n}}\ncomplete -F _moehub {}\n", application.name);
}

// zsh

/// Fit to stand inside single quotes and the brackets of a specification.
std::string zsh_quoted(std::string_view text) {
    return replaced(
        text,
        {{'\'', "'\\''"}, {'[', "\\["}, {']', "\\]"}, {':', "\\:"}, {'\\', "\\\\"}, {'\n', " "}});
}

/// What completes the value; begins with its name.
std::string zsh_action(const Option& option) {
    const OptionValues values = values_of(option);
    const std::string title = zsh_quoted(type_of(option).empty() ? "value" : type_of(option));
    if (values.words.empty()) return fmt::format(":{}:{}", title, values.files ? "_files" : " ");
    if (values.list) return fmt::format(":{}:_sequence compadd - {}", title, values.words);
    if (!values.files) return fmt::format(":{}:({})", title, values.words);
    return fmt::format(":{}:{{compadd -- {}; _files}}", title, values.words);
}

std::string zsh_specification(const Option& option) {
    if (is_argument(option))
        return fmt::format("'{}{}'", option.rules.many ? "*" : "", zsh_action(option));
    const bool repeated = option.target.list;
    std::string out;
    for (const std::string& name : names_of(option))
        out += fmt::format("{}'{}{}{}[{}]{}'", out.empty() ? "" : " \\\n                ",
                           repeated ? "*" : "", name, is_flag(option) ? "" : "=",
                           zsh_quoted(option.doc), is_flag(option) ? "" : zsh_action(option));
    return out;
}

std::string zsh_completion(const Application& application) {
    std::string out = fmt::format(
        "#compdef {0}\n# zsh completion of {0}, as `{0} completion zsh` prints it.\n_{0}() {{\n"
        "    local context state line\n    typeset -A opt_args\n"
        "    _arguments -C '--help[what there is]' '--version[print the version]' "
        "'1:command:->command' '*::argument:->argument'\n"
        "    case $state in\n    command)\n        local -a commands=(\n",
        application.name);
    for (const Command& command : application.commands)
        out += fmt::format("            '{}:{}'\n", command.name, zsh_quoted(command.doc));
    out +=
        "        )\n        _describe command commands\n        ;;\n    argument)\n"
        "        case $words[1] in\n";
    for (const Command& command : application.commands) {
        out += fmt::format("        {})\n            _arguments '--help[what it takes]'",
                           command.name);
        for (const Option& option : command.options)
            out += fmt::format(" \\\n                {}", zsh_specification(option));
        out += "\n            ;;\n";
    }
    return out +
           fmt::format("        esac\n        ;;\n    esac\n}}\n_{} \"$@\"\n", application.name);
}

// fish

constexpr std::string_view kFishFunctions = R"(function __moehub_list
    set -l before (string replace -r '[^,]*$' '' -- (commandline -ct))
    for name in $argv
        echo "$before$name"
    end
end
)";

std::string fish_quoted(std::string_view text) {
    return "'" + replaced(text, {{'\'', "\\'"}, {'\\', "\\\\"}}) + "'";
}

std::string fish_candidates(const Option& option) {
    const OptionValues values = values_of(option);
    if (is_flag(option)) return " -f";
    if (values.words.empty()) return values.files ? " -r -F" : " -x";
    if (values.list) return fmt::format(" -x -a '(__moehub_list {})'", values.words);
    return fmt::format(" -r{} -a '{}'", values.files ? " -F" : " -f", values.words);
}

std::string fish_line(const Application& application, const Command& command,
                      const Option& option) {
    std::string out = fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'",
                                  application.name, command.name);
    if (!is_argument(option))
        for (const std::string& name : names_of(option))
            out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    return out + fish_candidates(option) + " -d " + fish_quoted(option.doc) + "\n";
}

std::string fish_completion(const Application& application) {
    std::string out =
        fmt::format("# fish completion of {0}, as `{0} completion fish` prints it.\n{1}",
                    application.name, kFishFunctions);
    for (const Command& command : application.commands) {
        out += fmt::format("complete -c {} -n __fish_use_subcommand -f -a {} -d {}\n",
                           application.name, command.name, fish_quoted(command.doc));
        for (const Option& option : command.options) out += fish_line(application, command, option);
    }
    return out;
}

// The manual page

constexpr std::string_view kManDate = "2026-11-18";  ///< day on which the page last changed

/// A line may not begin with a point or a quote, which are commands, and a minus is no hyphen.
std::string roff(std::string_view text) {
    std::string out = replaced(text, {{'\\', "\\e"}, {'-', "\\-"}});
    for (std::size_t line = 0; line < out.size(); line = out.find('\n', line) + 1) {
        if (out[line] == '.' || out[line] == '\'') out.insert(line, "\\&");
        if (out.find('\n', line) == out.npos) break;
    }
    return out;
}

/// "-o, --output FILE".
std::string man_heading(const Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : names_of(option)) names.push_back("\\fB" + roff(name) + "\\fR");
    const std::string value =
        type_of(option).empty() ? "" : " \\fI" + roff(type_of(option)) + "\\fR";
    if (is_argument(option)) return "\\fI" + roff(type_of(option)) + "\\fR";
    return fmt::format("{}{}", fmt::join(names, ", "), value);
}

std::string man_option(const Option& option) {
    std::string doc = option.doc;
    if (const std::string& usual = option.target.usual; !usual.empty())
        doc += fmt::format("; without it {}", usual);
    return fmt::format(".TP\n{}\n{}\n", man_heading(option), roff(doc));
}

std::string man_section(const Application& application, const Command& command) {
    std::string out = fmt::format(".SS \"{} {}\"\n{}\n", roff(application.name), roff(command.name),
                                  roff(command.doc));
    for (const Option& option : command.options) out += man_option(option);
    return out + fmt::format(".PP\nExample:\n.PP\n.nf\n  {}\n.fi\n", roff(command.example));
}

constexpr std::string_view kManEnd = R"(.SH OUTPUT
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

std::string man_page(const Application& application) {
    std::string out = fmt::format(".TH MOEHUB 1 \"{}\" \"{}\" \"User Commands\"\n", kManDate,
                                  roff(application.version));
    const std::size_t colon = application.doc.find(": ");
    out += fmt::format(".SH NAME\n{} \\- {}\n", roff(application.name),
                       roff(application.doc.substr(colon == application.doc.npos ? 0 : colon + 2)));
    out += fmt::format(
        ".SH SYNOPSIS\n\\fB{0}\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR ...]\n.br\n\\fB{0}\\fR "
        "\\fICOMMAND\\fR \\fB\\-\\-help\\fR\n.br\n\\fB{0} \\-\\-version\\fR\n",
        roff(application.name));
    out += ".SH COMMANDS\n";
    for (const Command& command : application.commands) out += man_section(application, command);
    return out + std::string(kManEnd);
}

}  // namespace

Command completion_command(const Application& application) {
    using Writer = std::string (*)(const Application&);
    const auto writer = std::make_shared<Writer>(bash_completion);
    Target shell = to(*writer, Named<Writer>{{"bash", bash_completion},
                                             {"zsh", zsh_completion},
                                             {"fish", fish_completion}});
    shell.usual.clear();
    const Options options{{"shell", std::move(shell), "bash, zsh or fish", kRequired}};
    return {"completion",
            "Print what a shell needs to complete commands, options and their values",
            "for bash, zsh and fish",
            "moehub completion bash > ~/.local/share/bash-completion/completions/moehub",
            options,
            [options, writer, &application](const Said& said, const std::string&) {
                fill(options, said);
                put((*writer)(application), "");
            }};
}

Command man_command(const Application& application) {
    return {"man",
            "Print the manual page, in roff",
            "the manual page",
            "moehub man | man -l -",
            {},
            [&application](const Said&, const std::string&) { put(man_page(application), ""); }};
}

}  // namespace moehub
