// The one file that knows CLI11, which takes ten times as long to compile as its users.
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "cli/command.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moehub {
namespace {

/// Where the parser leaves what stands behind an option.
struct Typed {
    CLI::Option* option = nullptr;
    std::vector<std::string> texts;
    bool flag = false;
};

void add(CLI::App& app, const Option& option, Typed& typed) {
    const Target& target = option.target;
    if (target.kind == ValueKind::flag) {
        typed.option = app.add_flag(option.names, typed.flag, option.doc)->disable_flag_override();
        return;
    }
    typed.option = app.add_option(option.names, typed.texts, option.doc)
                       ->type_name(type_of(option))
                       ->allow_extra_args(option.rules.many);
    if (!target.list) typed.option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    if (!target.usual.empty()) typed.option->default_str(target.usual);
    typed.option->required(option.rules.required);
}

/// A command's options, in their order.
using TypedOptions = std::vector<Typed>;

void add(CLI::App& app, const Command& command, TypedOptions& typed) {
    CLI::App& sub = *app.add_subcommand(command.name, command.doc);
    sub.footer("Example:\n  " + command.example);
    typed.resize(command.options.size());
    for (std::size_t i = 0; i < typed.size(); ++i) add(sub, command.options[i], typed[i]);
}

Said said_of(const Command& command, const TypedOptions& typed) {
    Said said;
    for (std::size_t i = 0; i < typed.size(); ++i) {
        const Typed& one = typed[i];
        if (one.option->count() == 0) continue;
        const bool flag = command.options[i].target.kind == ValueKind::flag;
        said.push_back(
            {key_of(command.options[i]), flag ? std::vector<std::string>{"true"} : one.texts});
    }
    return said;
}

/// The command that was being parsed: the last one named; none when it was the program itself.
const Command* active(const CLI::App& app, const Application& application) {
    const auto parsed = app.get_subcommands();
    if (parsed.empty()) return nullptr;
    for (const Command& command : application.commands)
        if (command.name == parsed.back()->get_name()) return &command;
    return nullptr;
}

std::string shell_word(std::string_view word) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%";
    if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return std::string(word);
    std::string out = "'";
    for (const char letter : word) {
        if (letter == '\'')
            out += "'\\''";
        else
            out += letter;
    }
    return out + "'";
}

std::string line_of(const Application& application, int argc, char** argv) {
    std::string line = application.name;
    for (int i = 1; i < argc; ++i) line += " " + shell_word(argv[i]);
    return line;
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

std::vector<std::string> command_names(const Application& application) {
    std::vector<std::string> names;
    for (const Command& command : application.commands) names.push_back(command.name);
    return names;
}

/// The command's names of options with two dashes.
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

/// For arguments that nobody took, one at least: what is unknown, with the nearest known name.
/// `command` is the one they stand behind; null: none was named.
std::string explain_strays(const Application& application, const Command* command,
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
    const auto known = command_names(application);
    return fmt::format("unknown command {}, allowed: {}{}", moehub::quoted(stray),
                       fmt::join(known, ", "), did_you_mean(stray, known));
}

std::string explain(const CLI::App& app, const Application& application,
                    const CLI::ParseError& error) {
    const Command* const command = active(app, application);
    const auto strays = app.remaining(true);
    if (!strays.empty()) return explain_strays(application, command, strays);
    return (command == nullptr ? "" : command->name + ": ") + reworded(error);
}

/// Text of --help or --version.
std::string requested_text(const CLI::App& app, const CLI::Success& request) {
    std::ostringstream text;
    app.exit(request, text, text);
    return text.str();
}

}  // namespace

Parsed parse_command_line(const Application& application, int argc, char** argv) {
    CLI::App app(application.doc, application.name);
    app.set_version_flag("--version", application.version, "print the version");
    app.require_subcommand(0, 1);
    app.footer("Example:\n  " + application.example);
    std::vector<TypedOptions> typed(application.commands.size());
    for (std::size_t i = 0; i < typed.size(); ++i) add(app, application.commands[i], typed[i]);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& request) {
        return {.text = requested_text(app, request)};
    } catch (const CLI::ParseError& error) {
        throw InputError(explain(app, application, error));
    }
    const Command* const command = active(app, application);
    if (command == nullptr) return {};
    const auto number = static_cast<std::size_t>(command - application.commands.data());
    return {command, said_of(*command, typed[number]), line_of(application, argc, argv)};
}

}  // namespace moehub
