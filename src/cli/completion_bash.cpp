#include "cli/completion.hpp"
#include "cli/completion_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// Candidates are kept whole: a list's earlier names stand before each of them.
constexpr std::string_view kFunctions = R"(_moehub_words() {
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

constexpr std::string_view kBegin = R"(_moehub() {
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

std::string call_for(const OptionValues& values) {
    if (values.words.empty()) return values.files ? "_moehub_files" : ":";
    return fmt::format("{} '{}'{}", values.list ? "_moehub_list" : "_moehub_words",
                       fmt::join(values.words, " "), values.files && !values.list ? " f" : "");
}

/// Options with values, one pattern each; then what stands alone: other options, or arguments.
std::string case_of(const Command& command) {
    std::string out = fmt::format("        {})\n            case $prev in\n", command.name);
    std::vector<std::string> names{"--help"};
    std::string argument = ":";
    for (const Option& option : command.options) {
        const OptionValues values = values_of(option);
        if (is_argument(option)) {
            if (argument == ":") argument = call_for(values);
            continue;
        }
        for (const std::string& name : names_of(option))
            if (name.starts_with("--")) names.push_back(name);
        if (!is_flag(option))
            out += fmt::format("                {}) {}; return ;;\n",
                               fmt::join(names_of(option), " | "), call_for(values));
    }
    return out + fmt::format(
                     "            esac\n            case $cur in\n"
                     "                -*) _moehub_words '{}' ;;\n"
                     "                *) {} ;;\n            esac\n            ;;\n",
                     fmt::join(names, " "), argument);
}

}  // namespace

std::string bash_completion(const Program& program) {
    std::vector<std::string> names;
    for (const Command& command : program.commands) names.push_back(command.name);
    std::string out =
        fmt::format("# bash completion of {0}, as `{0} completion bash` prints it.\n{1}{2}",
                    program.name, kFunctions, kBegin);
    out +=
        fmt::format("    case $command in\n        \"\") _moehub_words '{} --help --version' ;;\n",
                    fmt::join(names, " "));
    for (const Command& command : program.commands) out += case_of(command);
    return out + fmt::format("    esac\n}}\ncomplete -F _moehub {}\n", program.name);
}

}  // namespace moehub
