#include "cli/completion.hpp"
#include "cli/completion_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

constexpr std::string_view kFunctions = R"(function __moehub_list
    set -l before (string replace -r '[^,]*$' '' -- (commandline -ct))
    for name in $argv
        echo "$before$name"
    end
end
)";

std::string quoted_text(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return out + "'";
}

std::string candidates(const Option& option) {
    const OptionValues values = values_of(option);
    const std::string words = fmt::format("{}", fmt::join(values.words, " "));
    if (is_flag(option)) return " -f";
    if (values.words.empty()) return values.files ? " -r -F" : " -x";
    if (values.list) return fmt::format(" -x -a '(__moehub_list {})'", words);
    return fmt::format(" -r{} -a '{}'", values.files ? " -F" : " -f", words);
}

std::string line_of(const Program& program, const Command& command, const Option& option) {
    std::string out = fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'",
                                  program.name, command.name);
    if (!is_argument(option))
        for (const std::string& name : names_of(option))
            out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    return out + candidates(option) + " -d " + quoted_text(option.doc) + "\n";
}

}  // namespace

std::string fish_completion(const Program& program) {
    std::string out =
        fmt::format("# fish completion of {0}, as `{0} completion fish` prints it.\n{1}",
                    program.name, kFunctions);
    for (const Command& command : program.commands) {
        out += fmt::format("complete -c {} -n __fish_use_subcommand -f -a {} -d {}\n", program.name,
                           command.name, quoted_text(command.doc));
        for (const Option& option : command.options) out += line_of(program, command, option);
    }
    return out;
}

}  // namespace moehub
