#include "cli/mistakes.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

std::vector<std::string> command_names(const Program& program) {
    std::vector<std::string> names;
    for (const Command& command : program.commands) names.push_back(command.name);
    return names;
}

/// Those with two dashes.
std::vector<std::string> option_names(const Command* command) {
    if (command == nullptr) return {"--help", "--version"};
    std::vector<std::string> names{"--help"};
    for (const Option& option : command->options)
        for (const std::string& name : listed(option.names))
            if (name.starts_with("--")) names.push_back(name);
    return names;
}

std::string explain_option(const Command* command, const std::string& name) {
    std::string hint = did_you_mean(name, option_names(command));
    if (hint.empty())
        hint = fmt::format("; see moehub {}--help", command == nullptr ? "" : command->name + " ");
    return fmt::format("{}unknown option {}{}", command == nullptr ? "" : command->name + ": ",
                       moehub::quoted(name), hint);
}

}  // namespace

std::string explain_strays(const Program& program, const Command* command,
                           const std::vector<std::string>& strays) {
    // The option among them, if any: what follows it is its value.
    const auto option = std::find_if(strays.begin(), strays.end(), [](const std::string& one) {
        return one.size() > 1 && one.starts_with('-');
    });
    const std::string& stray = option != strays.end() ? *option : strays.front();
    if (stray.starts_with('-')) return explain_option(command, stray.substr(0, stray.find('=')));
    if (command != nullptr)
        return fmt::format("{0}: unexpected argument {1}; see moehub {0} --help", command->name,
                           moehub::quoted(stray));
    const auto known = command_names(program);
    return fmt::format("unknown command {}, allowed: {}{}", moehub::quoted(stray),
                       fmt::join(known, ", "), did_you_mean(stray, known));
}

}  // namespace moehub
