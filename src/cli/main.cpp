// The program: parse the command line, call the library, print. Exit codes: 0 done, 2 bad input
// (one line on stderr), 3 a defect of moehub, 130 ended by Ctrl-C.
#include "base/utf8.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"

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

constexpr const char* kOverview =
    R"(moehub simulates Mixture-of-Experts layers on multi-GPU machines, packet by packet.

  moehub compare               a MoE or tensor-parallel layer under several systems, side by side
  moehub run                   one of them, with what its hardware units counted
  moehub gain                  where a system's lead comes from: host, fusion, overlap, hardware
  moehub model                 a whole model under several systems, end to end
  moehub sweep STUDY.toml      many settings, seeds and systems, over all cores, into a database
  moehub merge OUT IN…         databases of parts of a sweep, joined
  moehub plan                  the fastest parallel layouts of a training run, and why
  moehub area                  silicon that the proposals' tables take
  moehub lines                 the systems, and how long their programs are
  moehub list                  what there is: machines, GPUs, models, systems
  moehub show dgx-h100         everything known about one of them
  moehub collective            time, bandwidth and traffic of one collective
  moehub predict KERNEL        time of one kernel of a serving engine on one card
  moehub validate FILE.csv     the model against measured times
  moehub reproduce             a paper's published numbers beside the simulator's
  moehub profile FILE          what recorded routing is like
  moehub place --profile FILE  experts on GPUs from recorded routing, in the files servers load
  moehub completion SHELL      for bash, zsh and fish; moehub man prints the manual page

Start with:
  moehub compare
  moehub compare --layer-type tp
  moehub COMMAND --help
)";

int complain(std::string_view what, int code) {
    fmt::print(stderr, "moehub: {}\n", printable(what));
    return code;
}

Program program() {
    return {
        "moehub",
        "moehub: Mixture-of-Experts on multi-GPU machines, simulated packet by packet",
        fmt::format("moehub {}", version()),
        "Example:\n  moehub compare --systems ideal,megatron-te,moe-hub",
        {compare_command(), run_command(), gain_command(), model_command(), sweep_command(),
         merge_command(), plan_command(), area_command(), lines_command(), list_command(),
         show_command(), collective_command(), predict_command(), validate_command(),
         reproduce_command(), profile_command(), place_command()},
    };
}

int run(int argc, char** argv) {
    Program moehub = program();
    Command about[] = {completion_command(moehub), man_command(moehub)};
    for (Command& command : about) moehub.commands.push_back(std::move(command));
    const Asked asked = parse_command_line(moehub, argc, argv);
    if (asked.command != nullptr)
        asked.command->run();
    else
        put(fitted(asked.text.empty() ? kOverview : asked.text, style_for("").width), "");
    put("", "");  // what was printed but not yet written
    return kDone;
}

int guarded_run(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const Interrupted& error) {
        return complain(error.what(), kInterruptedCode);
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
