// The program: parse the command line, call the library, print. Exit codes: 0 done, 2 bad input
// (one line on stderr), 3 a defect of moehub, 130 ended by Ctrl-C.
#include "answers/question.hpp"
#include "base/utf8.hpp"
#include "cli/command.hpp"
#include "cli/interrupt.hpp"

#include <moehub/error.hpp>
#include <moehub/version.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace moehub {
namespace {

constexpr int kDone = 0;
constexpr int kBadInput = 2;
constexpr int kDefect = 3;

int complain(std::string_view what, int code) {
    fmt::print(stderr, "moehub: {}\n", printable(what));
    return code;
}

Application application() {
    Application made{"moehub",
                     "moehub: Mixture-of-Experts on multi-GPU machines, simulated packet by packet",
                     fmt::format("moehub {}", version()),
                     "moehub compare --systems ideal,megatron-te,moe-hub",
                     {}};
    for (const Question& question : questions()) made.commands.push_back(command_of(question));
    return made;
}

/// What the program can do, where nothing is asked.
std::string overview_of(const Application& application) {
    std::string out =
        "moehub simulates Mixture-of-Experts layers on multi-GPU machines, packet by packet.\n\n";
    for (const Command& command : application.commands) {
        std::string how = command.name;
        for (const Option& option : command.options)
            if (is_argument(option) && option.rules.required) how += " " + type_of(option);
        out += fmt::format("  moehub {:<24}  {}\n", how, command.overview);
    }
    return out +
           "\nStart with:\n  moehub compare\n  moehub compare --layer-type tp\n"
           "  moehub COMMAND --help\n";
}

int run(int argc, char** argv) {
    Application moehub = application();
    Command about[] = {completion_command(moehub), man_command(moehub)};
    for (Command& command : about) moehub.commands.push_back(std::move(command));
    const Parsed parsed = parse_command_line(moehub, argc, argv);
    if (parsed.command != nullptr)
        parsed.command->run(parsed.said, parsed.line);
    else
        put(fitted(parsed.text.empty() ? overview_of(moehub) : parsed.text, style_for("").width),
            "");
    put("", "");  // what was printed but not yet written
    return kDone;
}

int guarded_run(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const Interrupted& error) {
        return complain(error.what(), kInterruptedCode);
    } catch (const Ended&) {
        return complain(Interrupted().what(), kInterruptedCode);
    } catch (const InputError& error) {
        return complain(error.what(), kBadInput);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::broken_pipe) return kDone;
        if (error.code() == std::errc::no_space_on_device)
            return complain(fmt::format("output: {}", error.code().message()), kBadInput);
        return complain(fmt::format("internal error: {}", error.what()), kDefect);
    } catch (const std::bad_alloc&) {
        return complain("not enough memory: ask for fewer GPUs, tokens or bytes", kBadInput);
    } catch (const std::exception& error) {
        return complain(fmt::format("internal error: {}", error.what()), kDefect);
    }
}

}  // namespace
}  // namespace moehub

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves (| head) shows as EPIPE above
    moehub::end_on_interrupt();
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow further is a full disk, not the end
    return moehub::guarded_run(argc, argv);
}
