#include "cli/mistakes.hpp"

#include "base/nearest.hpp"
#include "base/quantity.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// The command that was being parsed: the last one named, or the program itself.
const CLI::App& active(const CLI::App& app) {
    const auto parsed = app.get_subcommands();
    return parsed.empty() ? app : *parsed.back();
}

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(command->get_name());
    return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const auto* option : command.get_options())
        for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

/// Arguments that nobody took. The option among them, if any: what follows it is its value.
std::string stray_argument(const CLI::App& app) {
    const auto strays = app.remaining(true);
    const auto option = std::find_if(strays.begin(), strays.end(), [](const std::string& one) {
        return one.size() > 1 && one.starts_with('-');
    });
    return option != strays.end() ? *option : strays.front();
}

std::string explain_stray(const CLI::App& app, const std::string& stray) {
    const CLI::App& command = active(app);
    const std::string prefix = &command == &app ? "" : command.get_name() + ": ";
    if (stray.starts_with('-')) {
        const std::string name = stray.substr(0, stray.find('='));
        std::string hint = did_you_mean(name, option_names(command));
        if (hint.empty())
            hint = fmt::format("; see moehub {}--help",
                               prefix.empty() ? "" : command.get_name() + " ");
        return fmt::format("{}unknown option {}{}", prefix, moehub::quoted(name), hint);
    }
    if (&command != &app)
        return fmt::format("{}unexpected argument {}; see moehub {} --help", prefix,
                           moehub::quoted(stray), command.get_name());
    const auto known = command_names(app);
    return fmt::format("unknown command {}, allowed: {}{}", moehub::quoted(stray),
                       fmt::join(known, ", "), did_you_mean(stray, known));
}

/// The parser's words; those about too few or too many values read better in ours.
std::string reworded(const CLI::ParseError& error) {
    const std::string what = error.what();
    if (error.get_name() != "ArgumentMismatch") return what;
    const std::string option = what.substr(0, what.find(": "));
    if (what.ends_with("missing")) return option + ": found nothing, allowed: a value";
    if (what.find("At Most 1") != std::string::npos) return option + ": stands more than once";
    return what;
}

}  // namespace

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
    if (!app.remaining(true).empty()) return explain_stray(app, stray_argument(app));
    const CLI::App& command = active(app);
    const std::string prefix = &command == &app ? "" : command.get_name() + ": ";
    return prefix + reworded(error);
}

}  // namespace moehub
