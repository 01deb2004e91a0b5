// Completion of command lines for shells, written from the same data that they are parsed by.
#include "cli/command.hpp"

#include <moehub/presets.hpp>

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// What may stand behind an option.
struct OptionValues {
    std::vector<std::string> words;  ///< names of presets, or what is allowed
    bool files = false;              ///< files as well, or alone
    bool list = false;               ///< several with commas between
};

bool is_flag(const Option& option) {
    return option.target.kind == ValueKind::flag;
}

OptionValues values_of(const Option& option) {
    const Target& target = option.target;
    const KindWords& words = words_of(target.kind);
    OptionValues values{target.choices, words.files, target.commas};
    if (!words.presets.empty()) values.words = preset_names(words.presets);
    if (target.keys && key_of(option) != "set")  // of nouns there are hundreds
        for (const std::string& key : target.keys()) values.words.push_back(key + "=");
    return values;
}

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
    return fmt::format("{} '{}'{}", values.list ? "_moehub_list" : "_moehub_words",
                       fmt::join(values.words, " "), values.files && !values.list ? " f" : "");
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

std::string bash_completion(const Application& program) {
    std::vector<std::string> names;
    for (const Command& command : program.commands) names.push_back(command.name);
    std::string out =
        fmt::format("# bash completion of {0}, as `{0} completion bash` prints it.\n{1}{2}",
                    program.name, kBashFunctions, kBashBegin);
    out +=
        fmt::format("    case $command in\n        \"\") _moehub_words '{} --help --version' ;;\n",
                    fmt::join(names, " "));
    for (const Command& command : program.commands) out += bash_case(command);
    return out + fmt::format("    esac\n}}\ncomplete -F _moehub {}\n", program.name);
}

/// Inside single quotes and the brackets of a specification.
std::string zsh_quoted(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'') {
            out += "'\\''";
            continue;
        }
        if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out;
}

/// What completes the value; begins with its name.
std::string zsh_action(const Option& option) {
    const OptionValues values = values_of(option);
    const std::string title = zsh_quoted(type_of(option).empty() ? "value" : type_of(option));
    const std::string words = fmt::format("{}", fmt::join(values.words, " "));
    if (values.words.empty()) return fmt::format(":{}:{}", title, values.files ? "_files" : " ");
    if (values.list) return fmt::format(":{}:_sequence compadd - {}", title, words);
    if (!values.files) return fmt::format(":{}:({})", title, words);
    return fmt::format(":{}:{{compadd -- {}; _files}}", title, words);
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

std::string zsh_completion(const Application& program) {
    std::string out = fmt::format(
        "#compdef {0}\n# zsh completion of {0}, as `{0} completion zsh` prints it.\n_{0}() {{\n"
        "    local context state line\n    typeset -A opt_args\n"
        "    _arguments -C '--help[what there is]' '--version[print the version]' "
        "'1:command:->command' '*::argument:->argument'\n"
        "    case $state in\n    command)\n        local -a commands=(\n",
        program.name);
    for (const Command& command : program.commands)
        out += fmt::format("            '{}:{}'\n", command.name, zsh_quoted(command.doc));
    out +=
        "        )\n        _describe command commands\n        ;;\n    argument)\n"
        "        case $words[1] in\n";
    for (const Command& command : program.commands) {
        out += fmt::format("        {})\n            _arguments '--help[what it takes]'",
                           command.name);
        for (const Option& option : command.options)
            out += fmt::format(" \\\n                {}", zsh_specification(option));
        out += "\n            ;;\n";
    }
    return out + fmt::format("        esac\n        ;;\n    esac\n}}\n_{} \"$@\"\n", program.name);
}

constexpr std::string_view kFishFunctions = R"(function __moehub_list
    set -l before (string replace -r '[^,]*$' '' -- (commandline -ct))
    for name in $argv
        echo "$before$name"
    end
end
)";

std::string fish_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return out + "'";
}

std::string fish_candidates(const Option& option) {
    const OptionValues values = values_of(option);
    const std::string words = fmt::format("{}", fmt::join(values.words, " "));
    if (is_flag(option)) return " -f";
    if (values.words.empty()) return values.files ? " -r -F" : " -x";
    if (values.list) return fmt::format(" -x -a '(__moehub_list {})'", words);
    return fmt::format(" -r{} -a '{}'", values.files ? " -F" : " -f", words);
}

std::string fish_line(const Application& program, const Command& command, const Option& option) {
    std::string out = fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'",
                                  program.name, command.name);
    if (!is_argument(option))
        for (const std::string& name : names_of(option))
            out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    return out + fish_candidates(option) + " -d " + fish_quoted(option.doc) + "\n";
}

std::string fish_completion(const Application& program) {
    std::string out =
        fmt::format("# fish completion of {0}, as `{0} completion fish` prints it.\n{1}",
                    program.name, kFishFunctions);
    for (const Command& command : program.commands) {
        out += fmt::format("complete -c {} -n __fish_use_subcommand -f -a {} -d {}\n", program.name,
                           command.name, fish_quoted(command.doc));
        for (const Option& option : command.options) out += fish_line(program, command, option);
    }
    return out;
}

}  // namespace

Command completion_command(const Application& program) {
    using Writer = std::string (*)(const Application&);
    const auto writer = std::make_shared<Writer>(bash_completion);
    Target shell = to(*writer, Named<Writer>{{"bash", bash_completion},
                                             {"zsh", zsh_completion},
                                             {"fish", fish_completion}});
    shell.usual.clear();
    const Options options{{"shell", std::move(shell), "bash, zsh or fish", {.required = true}}};
    return {"completion",
            "Print what a shell needs to complete commands, options and their values",
            "for bash, zsh and fish",
            "moehub completion bash > ~/.local/share/bash-completion/completions/moehub",
            options,
            [options, writer, &program](const Said& said, const std::string&) {
                fill(options, said);
                put((*writer)(program), "");
            }};
}

}  // namespace moehub
