#include "cli/completion.hpp"
#include "cli/completion_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// Inside single quotes and the brackets of a specification.
std::string quoted_doc(std::string_view text) {
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
std::string action_of(const Option& option) {
    const OptionValues values = values_of(option);
    const std::string title = quoted_doc(type_of(option).empty() ? "value" : type_of(option));
    const std::string words = fmt::format("{}", fmt::join(values.words, " "));
    if (values.words.empty()) return fmt::format(":{}:{}", title, values.files ? "_files" : " ");
    if (values.list) return fmt::format(":{}:_sequence compadd - {}", title, words);
    if (!values.files) return fmt::format(":{}:({})", title, words);
    return fmt::format(":{}:{{compadd -- {}; _files}}", title, words);
}

std::string specification(const Option& option) {
    if (is_argument(option))
        return fmt::format("'{}{}'", option.rules.many ? "*" : "", action_of(option));
    const bool repeated = option.target.list;
    std::string out;
    for (const std::string& name : names_of(option))
        out += fmt::format("{}'{}{}{}[{}]{}'", out.empty() ? "" : " \\\n                ",
                           repeated ? "*" : "", name, is_flag(option) ? "" : "=",
                           quoted_doc(option.doc), is_flag(option) ? "" : action_of(option));
    return out;
}

}  // namespace

std::string zsh_completion(const Program& program) {
    std::string out = fmt::format(
        "#compdef {0}\n# zsh completion of {0}, as `{0} completion zsh` prints it.\n_{0}() {{\n"
        "    local context state line\n    typeset -A opt_args\n"
        "    _arguments -C '--help[what there is]' '--version[print the version]' "
        "'1:command:->command' '*::argument:->argument'\n"
        "    case $state in\n    command)\n        local -a commands=(\n",
        program.name);
    for (const Command& command : program.commands)
        out += fmt::format("            '{}:{}'\n", command.name, quoted_doc(command.doc));
    out +=
        "        )\n        _describe command commands\n        ;;\n    argument)\n"
        "        case $words[1] in\n";
    for (const Command& command : program.commands) {
        out += fmt::format("        {})\n            _arguments '--help[what it takes]'",
                           command.name);
        for (const Option& option : command.options)
            out += fmt::format(" \\\n                {}", specification(option));
        out += "\n            ;;\n";
    }
    return out + fmt::format("        esac\n        ;;\n    esac\n}}\n_{} \"$@\"\n", program.name);
}

}  // namespace moehub
