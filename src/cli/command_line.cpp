// The one file that knows CLI11, which takes ten times as long to compile as its users.
#include "cli/command_line.hpp"

#include "cli/mistakes.hpp"

#include <moehub/error.hpp>

#include <sstream>

#include <CLI/CLI.hpp>

namespace moehub {
namespace {

CLI::Option* add(CLI::App& app, const Option& option) {
    const auto valued = [&](auto& value) {
        return app.add_option(option.names, value, option.doc)->type_name(option.type);
    };
    if (auto* const* flag = std::get_if<bool*>(&option.target))
        return app.add_flag(option.names, **flag, option.doc)->disable_flag_override();
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&option.target))
        return valued(**list)->allow_extra_args(option.rules.many);
    if (auto* const* maybe = std::get_if<std::optional<std::string>*>(&option.target))
        return valued(**maybe);
    std::string& text = *std::get<std::string*>(option.target);
    CLI::Option* const added = valued(text);
    if (!text.empty()) added->capture_default_str();
    return added;
}

void add(CLI::App& app, const Command& command) {
    CLI::App& sub = *app.add_subcommand(command.name, command.doc);
    sub.footer(command.footer);
    std::vector<CLI::Option*> added;
    for (const Option& option : command.options) added.push_back(add(sub, option));
    // Rules name options on either side of their own.
    for (std::size_t i = 0; i < added.size(); ++i) {
        const OptionRules& rules = command.options[i].rules;
        added[i]->required(rules.required);
        if (!rules.needs.empty()) added[i]->needs(sub.get_option(rules.needs));
        for (const std::string& other : rules.excludes) added[i]->excludes(sub.get_option(other));
    }
}

/// The command that was being parsed: the last one named; none when it was the program itself.
const Command* active(const CLI::App& app, const Program& program) {
    const auto parsed = app.get_subcommands();
    if (parsed.empty()) return nullptr;
    for (const Command& command : program.commands)
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

/// For options that ask what was typed.
void tell_command_line(const Program& program, const Command& command, int argc, char** argv) {
    std::string line = program.name;
    for (int i = 1; i < argc; ++i) line += " " + shell_word(argv[i]);
    for (const Option& option : command.options)
        if (option.command_line != nullptr) *option.command_line = line;
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

std::string explain(const CLI::App& app, const Program& program, const CLI::ParseError& error) {
    const Command* const command = active(app, program);
    const auto strays = app.remaining(true);
    if (!strays.empty()) return explain_strays(program, command, strays);
    return (command == nullptr ? "" : command->name + ": ") + reworded(error);
}

/// Text of --help or --version.
std::string requested_text(const CLI::App& app, const CLI::Success& request) {
    std::ostringstream text;
    app.exit(request, text, text);
    return text.str();
}

}  // namespace

Asked parse_command_line(const Program& program, int argc, char** argv) {
    CLI::App app(program.doc, program.name);
    app.set_version_flag("--version", program.version, "print the version");
    app.require_subcommand(0, 1);
    app.footer(program.footer);
    for (const Command& command : program.commands) add(app, command);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& request) {
        return {nullptr, requested_text(app, request)};
    } catch (const CLI::ParseError& error) {
        throw InputError(explain(app, program, error));
    }
    const Command* const command = active(app, program);
    if (command != nullptr) tell_command_line(program, *command, argc, argv);
    return {command, ""};
}

}  // namespace moehub
